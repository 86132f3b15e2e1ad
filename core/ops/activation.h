// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

namespace forerun {

enum class GeluKind : uint8_t {
  kNone,
  kTanh,   // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  kExact,  // 0.5 x (1 + erf(x / sqrt 2))
};

// Elementwise, any shape; strided inputs have leading dims that collapse (Tensor::AsMatrix).
// Gelu(kNone) is not an op.
Tensor Gelu(const OpContext& context, const Tensor& x, GeluKind kind);
// dx = dy * gelu'(x)
Tensor GeluBackward(const OpContext& context, const Tensor& x, const Tensor& dy, GeluKind kind);

// x is [..., 2 f], gate first: y = silu(x[..., :f]) * x[..., f:], silu(z) = z / (1 + exp(-z)).
Shape SwigluShape(const Shape& x);
Tensor Swiglu(const OpContext& context, const Tensor& x);
Tensor SwigluBackward(const OpContext& context, const Tensor& x, const Tensor& dy);

class ActivationKernels {
 public:
  virtual ~ActivationKernels() = default;
  virtual void Gelu(const OpContext& context, const Tensor& x, GeluKind kind,
                    const Tensor& y) const = 0;
  virtual void GeluBackward(const OpContext& context, const Tensor& x, const Tensor& dy,
                            GeluKind kind, const Tensor& dx) const = 0;
  virtual void Swiglu(const OpContext& context, const Tensor& x, const Tensor& y) const = 0;
  virtual void SwigluBackward(const OpContext& context, const Tensor& x, const Tensor& dy,
                              const Tensor& dx) const = 0;
};

}  // namespace forerun
