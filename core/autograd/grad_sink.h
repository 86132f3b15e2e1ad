// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/autograd/parameter.h"
#include "core/device/device.h"
#include "core/tensor/tensor.h"

namespace forerun {

// Where a weight gradient goes: `grad` has the parameter's local shape, and is to be overwritten
// by the first contribution of a step and added to by later ones.
struct GradSlot {
  Tensor grad;
  bool accumulate = false;
};

// Takes weight gradients. A contribution is: Slot, write or add, Contributed, in this order and
// one at a time per parameter. Called by the rank's compute thread.
class GradSink {
 public:
  virtual ~GradSink() = default;
  virtual GradSlot Slot(const Parameter& parameter) = 0;
  // `event` follows the writes to the slot.
  virtual void Contributed(const Parameter& parameter, std::shared_ptr<const Event> event) = 0;
};

}  // namespace forerun
