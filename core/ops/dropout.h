// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op_context.h"
#include "core/random/random.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace forerun {

// y = x / (1 - p) where kept, 0 where dropped (with probability p). The element at logical index
// i, row-major in `global`, draws UniformAt(key, i) and is dropped below p. x fills the box at
// `offset` of `global`, so the mask does not depend on how x is split over ranks. No mask is
// kept: the backward of the op is the op, on the gradient.
struct DropoutOptions {
  float p = 0.0f;
  RandomKey key = RandomKey::Root(0);
  Shape global;
  Shape offset;
};
Tensor Dropout(const OpContext& context, const Tensor& x, const DropoutOptions& options);

class DropoutKernels {
 public:
  virtual ~DropoutKernels() = default;
  virtual void Dropout(const OpContext& context, const Tensor& x, const DropoutOptions& options,
                       const Tensor& y) const = 0;
};

}  // namespace forerun
