// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"
#include "core/tensor/tensor.h"

namespace forerun::reference {

// The elements of a floating tensor as doubles, by index in row-major order of its shape, whatever
// its strides: what the oracles compute with. Slow and simple.
class Elements {
 public:
  explicit Elements(const Tensor& tensor) : tensor_(tensor), contiguous_(tensor.is_contiguous()) {}

  double operator[](int64_t index) const;
  // Rounds once, to nearest even.
  void Set(int64_t index, double value) const;

 private:
  // Elements from the first one in memory.
  int64_t Position(int64_t index) const;

  const Tensor tensor_;
  const bool contiguous_;
};

}  // namespace forerun::reference
