// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/activation.h"
#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

namespace forerun {

// out = activation(op(a) op(b) + bias), or out += op(a) op(b).
//   op(a): [m, k], op(b): [k, n], out: [m, n]; op transposes where asked.
struct MatmulOptions {
  bool transpose_a = false;  // a is [k, m]
  bool transpose_b = false;  // b is [n, k], as a linear layer keeps its weight
  bool accumulate = false;   // add to out (fp32 sum); excludes the three below
  Tensor bias;               // optional [n], dtype of a
  // Applied to the sum with the bias. Its backward needs the value before: `pre_activation`,
  // [m, n], is written where defined.
  GeluKind gelu = GeluKind::kNone;
  Tensor pre_activation;
};

// Shape of the product; fails a check that prints both shapes where they do not fit.
Shape MatmulShape(const Shape& a, const Shape& b, const MatmulOptions& options);

// a and b are matrices of one dtype, rows strided at will. Products are summed in fp32.
Tensor Matmul(const OpContext& context, const Tensor& a, const Tensor& b,
              const MatmulOptions& options = {});

// The same into `out`, which may be fp32 where a and b are 16 bits wide.
void MatmulInto(const OpContext& context, const Tensor& a, const Tensor& b,
                const MatmulOptions& options, const Tensor& out);

class MatmulKernels {
 public:
  virtual ~MatmulKernels() = default;
  virtual void Matmul(const OpContext& context, const Tensor& a, const Tensor& b,
                      const MatmulOptions& options, const Tensor& out) const = 0;
};

}  // namespace forerun
