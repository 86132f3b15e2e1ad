// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference/embedding.h"

#include <vector>

#include "core/ops/reference/elements.h"

namespace forerun::reference {
namespace {

class ReferenceEmbedding final : public EmbeddingKernels {
 public:
  void Forward(const OpContext&, const Tensor& tokens, const Tensor& table, int64_t first_row,
               const Tensor& out) const override {
    const Elements rows(table), to(out);
    const int32_t* token = tokens.data<int32_t>();
    const int64_t h = table.dim(1);
    for (int64_t t = 0; t < tokens.numel(); ++t) {
      const int64_t row = token[t] - first_row;
      const bool here = row >= 0 && row < table.dim(0);
      for (int64_t c = 0; c < h; ++c) to.Set(t * h + c, here ? rows[row * h + c] : 0.0);
    }
  }

  void Backward(const OpContext&, const Tensor& tokens, const Tensor& dout, int64_t first_row,
                bool accumulate, const Tensor& dtable) const override {
    const Elements gradient(dout), to(dtable);
    const int32_t* token = tokens.data<int32_t>();
    const int64_t h = dtable.dim(1);
    std::vector<double> sums(dtable.numel(), 0.0);
    for (int64_t t = 0; t < tokens.numel(); ++t) {
      const int64_t row = token[t] - first_row;
      if (row < 0 || row >= dtable.dim(0)) continue;
      for (int64_t c = 0; c < h; ++c) sums[row * h + c] += gradient[t * h + c];
    }
    for (int64_t i = 0; i < dtable.numel(); ++i) to.Set(i, sums[i] + (accumulate ? to[i] : 0.0));
  }
};

}  // namespace

const EmbeddingKernels& Embedding() {
  static const ReferenceEmbedding kernels;
  return kernels;
}

}  // namespace forerun::reference
