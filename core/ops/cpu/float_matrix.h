// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

// Whole matrices in and out of fp32, for products in dtypes that no kernel multiplies directly.
namespace forerun::cpu {

// A contiguous fp32 copy of a matrix of any stored dtype, its rows strided at will.
Tensor FloatMatrix(const OpContext& context, const Tensor& x);

// to = from, an fp32 matrix of the same shape, each element rounded once.
void RoundMatrix(const Tensor& from, const Tensor& to);

}  // namespace forerun::cpu
