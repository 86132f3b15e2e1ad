// SPDX-License-Identifier: Apache-2.0
#include "core/autograd/testing/test_device.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/ops/meta/kernels.h"
#include "core/ops/reference/kernels.h"
#include "core/random/random.h"

namespace forerun {
namespace {

std::unique_ptr<Allocator> MakeAllocator(DeviceKind kind) {
  if (kind == DeviceKind::kMeta) return std::make_unique<MetaAllocator>();
  return std::make_unique<CpuAllocator>();
}

}  // namespace

TestDevice::TestDevice(DeviceKind kind)
    : allocator_(MakeAllocator(kind)), stream_(std::make_unique<InlineStream>(Device{kind})) {
  op_.stream = stream_.get();
  op_.allocator = allocator_.get();
  op_.kernels = kind == DeviceKind::kMeta ? &meta::Kernels() : &reference::Kernels();
}

Tensor TestDevice::Normal(const char* name, const Shape& shape, DType dtype) const {
  Tensor tensor = op_.Empty(shape, dtype);
  if (is_meta()) return tensor;
  std::vector<float> values(shape.numel());
  FillNormal(RandomKey::Root(5).Fold(name), 0, 1.0, absl::MakeSpan(values));
  VisitFloating(dtype, [&](auto element) {
    using T = decltype(element);
    std::transform(values.begin(), values.end(), tensor.mutable_data<T>(),
                   [](float value) { return T(value); });
  });
  return tensor;
}

Tensor TestDevice::Tokens(const Shape& shape, const std::vector<int32_t>& values) const {
  FR_CHECK_EQ(shape.numel(), static_cast<int64_t>(values.size())) << "tokens";
  Tensor tensor = op_.Empty(shape, DType::kI32);
  if (!is_meta()) std::copy(values.begin(), values.end(), tensor.mutable_data<int32_t>());
  return tensor;
}

std::vector<double> ValuesOf(const Tensor& tensor) {
  FR_CHECK(tensor.is_contiguous()) << "values of a strided tensor";
  return VisitFloating(tensor.dtype(), [&](auto element) {
    using T = decltype(element);
    std::vector<double> values(tensor.numel());
    std::transform(tensor.data<T>(), tensor.data<T>() + tensor.numel(), values.begin(),
                   [](T value) {
                     if constexpr (sizeof(T) == sizeof(double)) {
                       return static_cast<double>(value);
                     } else {
                       return static_cast<double>(static_cast<float>(value));
                     }
                   });
    return values;
  });
}

}  // namespace forerun
