// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/matmul_epilogue.h"

#include "core/ops/cpu/activation.h"
#include "core/ops/cpu/float_matrix.h"

namespace forerun::cpu {

const Tensor& ProductTarget(const MatmulOptions& options, const Tensor& out) {
  const Tensor& before = options.pre_activation;
  return before.defined() && before.dtype() == out.dtype() ? before : out;
}

void Activate(const OpContext& context, const MatmulOptions& options, const Tensor& out) {
  if (options.gelu == GeluKind::kNone) return;
  const Tensor& product = ProductTarget(options, out);
  // An fp32 result of 16-bit factors: what is kept is rounded to 16 bits beside it.
  if (options.pre_activation.defined() && &product == &out) {
    RoundMatrix(out, options.pre_activation);
  }
  Activation().Gelu(context, product, options.gelu, out);
}

}  // namespace forerun::cpu
