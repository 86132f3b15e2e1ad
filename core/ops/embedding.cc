// SPDX-License-Identifier: Apache-2.0
#include "core/ops/embedding.h"

#include <array>

#include "absl/types/span.h"
#include "core/base/check.h"

namespace forerun {
namespace {

void CheckTokens(const Tensor& tokens) {
  FR_CHECK_EQ(tokens.dtype(), DType::kI32) << "tokens of an embedding";
  FR_CHECK(tokens.is_contiguous()) << "tokens of an embedding";
}

}  // namespace

Shape EmbeddingShape(const Shape& tokens, const Shape& table) {
  FR_CHECK_EQ(table.rank(), 2) << "an embedding table is [rows, h], got " << table;
  FR_CHECK_LT(tokens.rank(), Shape::kMaxRank) << "tokens of an embedding";
  std::array<int64_t, Shape::kMaxRank> dims{};
  for (int i = 0; i < tokens.rank(); ++i) dims[i] = tokens[i];
  dims[tokens.rank()] = table[1];
  return Shape(absl::MakeConstSpan(dims.data(), tokens.rank() + 1));
}

Tensor Embedding(const OpContext& context, const Tensor& tokens, const Tensor& table,
                 int64_t first_row) {
  const Shape shape = EmbeddingShape(tokens.shape(), table.shape());
  CheckTokens(tokens);
  FR_CHECK(IsFloating(table.dtype())) << "embedding table of " << table.dtype();
  Tensor out = context.Empty(shape, table.dtype());
  context.kernels->embedding->Forward(context, tokens, table, first_row, out);
  return out;
}

void EmbeddingBackward(const OpContext& context, const Tensor& tokens, const Tensor& dout,
                       int64_t first_row, bool accumulate, const Tensor& dtable) {
  CheckTokens(tokens);
  FR_CHECK_EQ(dout.shape(), EmbeddingShape(tokens.shape(), dtable.shape()))
      << "output gradient of an embedding";
  FR_CHECK(IsFloating(dout.dtype())) << "output gradient of an embedding of " << dout.dtype();
  FR_CHECK_EQ(dtable.dtype(), DType::kF32) << "gradient of an embedding table";
  context.kernels->embedding->Backward(context, tokens, dout, first_row, accumulate, dtable);
}

}  // namespace forerun
