// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

namespace forerun {

// Rotary position embedding (Su et al. 2021) in the half-split form of Llama and Megatron-LM:
// with x = [s, b, heads, d], position p = row along s, and for j < d/2
//   angle = p * base^(-2j/d),
//   y[j]       = x[j] cos(angle) - x[j + d/2] sin(angle)
//   y[j + d/2] = x[j + d/2] cos(angle) + x[j] sin(angle).
// d is even. x may be strided in all but the last dim.
struct RopeOptions {
  double base = 10000.0;
  bool inverse = false;  // rotate by -angle: the backward of the rotation
};
Tensor Rope(const OpContext& context, const Tensor& x, const RopeOptions& options);

class RopeKernels {
 public:
  virtual ~RopeKernels() = default;
  virtual void Rope(const OpContext& context, const Tensor& x, const RopeOptions& options,
                    const Tensor& y) const = 0;
};

}  // namespace forerun
