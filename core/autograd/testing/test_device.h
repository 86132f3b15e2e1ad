// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/device/allocator.h"
#include "core/device/device.h"
#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

namespace forerun {

// A device for tests, and all that ops need there: cpu with the reference kernels, or meta. Belongs
// to one thread and outlives its tensors.
class TestDevice {
 public:
  explicit TestDevice(DeviceKind kind);
  TestDevice(const TestDevice&) = delete;
  TestDevice& operator=(const TestDevice&) = delete;

  const OpContext& op() const { return op_; }
  Allocator& allocator() const { return *allocator_; }
  bool is_meta() const { return allocator_->device().kind == DeviceKind::kMeta; }

  // Normal values with deviation one, a function of (name, index) only. Without values on meta.
  Tensor Normal(const char* name, const Shape& shape, DType dtype = DType::kF64) const;
  // int32 values, given row-major.
  Tensor Tokens(const Shape& shape, const std::vector<int32_t>& values) const;

 private:
  const std::unique_ptr<Allocator> allocator_;
  const std::unique_ptr<Stream> stream_;
  OpContext op_;
};

// All elements of a contiguous floating tensor on cpu.
std::vector<double> ValuesOf(const Tensor& tensor);

}  // namespace forerun
