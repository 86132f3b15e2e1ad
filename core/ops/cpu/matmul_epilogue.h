// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/matmul.h"
#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

// The activation after a product, in two steps that every cpu matmul shares: the product with its
// bias is written to ProductTarget, then Activate makes `out` of it. The activation thus sees the
// value that its backward will see, rounded as it is kept.
namespace forerun::cpu {

// `options.pre_activation` where it is wanted and has the dtype of `out`, otherwise `out`.
const Tensor& ProductTarget(const MatmulOptions& options, const Tensor& out);

// Does nothing where the product has no activation.
void Activate(const OpContext& context, const MatmulOptions& options, const Tensor& out);

}  // namespace forerun::cpu
