// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/host_tensor.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace forerun {

Tensor HostTensor(const Shape& shape, DType dtype) {
  constexpr int64_t kWord = sizeof(int64_t);  // no element is larger, or wants more alignment
  const int64_t words = (shape.numel() * SizeOf(dtype) + kWord - 1) / kWord;
  const auto memory = std::make_shared<std::vector<int64_t>>(static_cast<size_t>(words));
  return Tensor::Wrap(memory, memory->data(), shape, dtype);
}

}  // namespace forerun
