// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "absl/strings/string_view.h"
#include "core/autograd/parameter.h"
#include "core/device/device.h"
#include "core/tensor/tensor.h"

namespace forerun {

// The right to read one parameter's current value. The tensor is read-only, has the parameter's
// local shape, and owns the lease: the lease ends when the last view of it is gone. A lease must
// end before the optimizer updates the parameter; one that does not is named and refused there.
class ParamLease {
 public:
  explicit ParamLease(Tensor value) : value_(std::move(value)) {}
  const Tensor& tensor() const { return value_; }

 private:
  Tensor value_;
};

// The gate: the only way to a parameter's value, for forward, recompute, evaluation, checkpoint,
// export and hashing alike. Read returns when the value of the current step is there (on cuda the
// stream waits, never the host). `reader` names who reads ("layers.0.mlp.fc1"), for the forward
// order, and for the message about a lease that is kept too long. Called by the rank's compute
// thread. Throws comm::GroupError if the gather that it waits for fails.
class ParamReader {
 public:
  virtual ~ParamReader() = default;
  virtual ParamLease Read(const Parameter& parameter, Stream& stream, absl::string_view reader) = 0;
};

}  // namespace forerun
