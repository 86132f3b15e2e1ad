// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

namespace forerun {

// out[..., :] = table[tokens[...] - first_row, :], or zeros where the token's row is not in the
// table (another tensor-parallel rank holds it). tokens: int32 of any shape; table: [rows, h].
Shape EmbeddingShape(const Shape& tokens, const Shape& table);
Tensor Embedding(const OpContext& context, const Tensor& tokens, const Tensor& table,
                 int64_t first_row);
// dtable (fp32 [rows, h]) gets the sum of the rows of dout (any floating dtype) by token, added
// in token order, so the bits do not depend on threads.
void EmbeddingBackward(const OpContext& context, const Tensor& tokens, const Tensor& dout,
                       int64_t first_row, bool accumulate, const Tensor& dtable);

class EmbeddingKernels {
 public:
  virtual ~EmbeddingKernels() = default;
  virtual void Forward(const OpContext& context, const Tensor& tokens, const Tensor& table,
                       int64_t first_row, const Tensor& out) const = 0;
  virtual void Backward(const OpContext& context, const Tensor& tokens, const Tensor& dout,
                        int64_t first_row, bool accumulate, const Tensor& dtable) const = 0;
};

}  // namespace forerun
