// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device/device.h"
#include "core/tensor/tensor.h"
#include "optim/adamw.h"
#include "optim/exact_sum.h"

namespace forerun {

// The numbers of an optimizer step on one device, apart from its messages: chosen when the
// optimizer is built. All tensors are contiguous, and fp32 but for `published`: where that is
// defined, p rounded to its 16-bit dtype. On meta there are no numbers, so that a
// step there does nothing but communicate. Immutable; any thread may call.
class ShardArithmetic {
 public:
  virtual ~ShardArithmetic() = default;
  virtual void AddSquares(const Tensor& values, ExactSum& sum) const = 0;  // exact_sum.h
  virtual void AdamW(const AdamWOptions& options, const AdamWStep& step, const Tensor& p,
                     const Tensor& m, const Tensor& v, const Tensor& grad,
                     const Tensor& published) const = 0;  // adamw.h
};

// Of cpu and meta.
const ShardArithmetic& ShardArithmeticOf(DeviceKind device);

}  // namespace forerun
