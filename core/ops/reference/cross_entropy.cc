// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/reference/elements.h"

namespace forerun::reference {
namespace {

bool Valid(const VocabularyRange& range, int64_t column) {
  return range.first_column + column < range.valid_columns;
}

class ReferenceCrossEntropy final : public CrossEntropyKernels {
 public:
  void RowMax(const OpContext&, const Tensor& logits, const VocabularyRange& range,
              const Tensor& row_max) const override {
    const Elements from(logits), to(row_max);
    const int64_t v = logits.dim(1);
    for (int64_t i = 0; i < logits.dim(0); ++i) {
      double largest = -std::numeric_limits<double>::infinity();
      for (int64_t j = 0; j < v; ++j) {
        if (Valid(range, j)) largest = std::max(largest, from[i * v + j]);
      }
      to.Set(i, largest);
    }
  }

  void SumExpAndTarget(const OpContext&, const Tensor& logits, const Tensor& targets,
                       const Tensor& row_max, const VocabularyRange& range,
                       const Tensor& sums) const override {
    const Elements from(logits), largest(row_max), to(sums);
    const int64_t n = logits.dim(0), v = logits.dim(1);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t target = targets.data<int32_t>()[i] - range.first_column;
      double sum = 0.0, at_target = 0.0;
      for (int64_t j = 0; j < v; ++j) {
        if (!Valid(range, j)) continue;
        const double below = from[i * v + j] - largest[i];
        sum += std::exp(below);
        if (j == target) at_target = below;
      }
      to.Set(i, sum);
      to.Set(n + i, at_target);
    }
  }

  void Loss(const OpContext&, const Tensor& sums, const Tensor& loss) const override {
    const Elements from(sums), to(loss);
    const int64_t n = loss.numel();
    for (int64_t i = 0; i < n; ++i) to.Set(i, std::log(from[i]) - from[n + i]);
  }

  void Backward(const OpContext&, const Tensor& logits, const Tensor& targets,
                const Tensor& row_max, const Tensor& sums, const Tensor& dloss,
                const VocabularyRange& range, const Tensor& dlogits) const override {
    const Elements from(logits), largest(row_max), sum(sums), gradient(dloss), to(dlogits);
    const int64_t n = logits.dim(0), v = logits.dim(1);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t target = targets.data<int32_t>()[i] - range.first_column;
      for (int64_t j = 0; j < v; ++j) {
        const double p = Valid(range, j) ? std::exp(from[i * v + j] - largest[i]) / sum[i] : 0.0;
        to.Set(i * v + j, (p - (Valid(range, j) && j == target ? 1.0 : 0.0)) * gradient[i]);
      }
    }
  }
};

}  // namespace

const CrossEntropyKernels& CrossEntropy() {
  static const ReferenceCrossEntropy kernels;
  return kernels;
}

}  // namespace forerun::reference
