// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cross_entropy.h"

#include "core/base/check.h"

namespace forerun {
namespace {

void CheckLogits(const Tensor& logits, const VocabularyRange& range) {
  FR_CHECK_EQ(logits.rank(), 2) << "logits are [n, v], got " << logits.shape();
  FR_CHECK(IsFloating(logits.dtype())) << "logits of " << logits.dtype();
  FR_CHECK_GE(range.first_column, 0) << "first column of the logits";
  FR_CHECK_GT(range.valid_columns, 0) << "valid columns of the vocabulary";
}

void CheckTargets(const Tensor& targets, int64_t n) {
  FR_CHECK_EQ(targets.shape(), Shape{n}) << "targets of cross entropy";
  FR_CHECK_EQ(targets.dtype(), DType::kI32) << "targets of cross entropy";
  FR_CHECK(targets.is_contiguous()) << "targets of cross entropy";
}

void CheckStatistic(const Tensor& statistic, const Shape& shape, const char* name) {
  FR_CHECK_EQ(statistic.shape(), shape) << name << " of cross entropy";
  FR_CHECK_EQ(statistic.dtype(), DType::kF32) << name << " of cross entropy";
  FR_CHECK(statistic.is_contiguous()) << name << " of cross entropy";
}

void CheckBackward(const Tensor& logits, const Tensor& targets, const Tensor& row_max,
                   const Tensor& sums, const Tensor& dloss, const VocabularyRange& range) {
  CheckLogits(logits, range);
  const int64_t n = logits.dim(0);
  CheckTargets(targets, n);
  CheckStatistic(row_max, {n}, "row_max");
  CheckStatistic(sums, {2, n}, "sums");
  CheckStatistic(dloss, {n}, "dloss");
}

}  // namespace

Tensor RowMax(const OpContext& context, const Tensor& logits, const VocabularyRange& range) {
  CheckLogits(logits, range);
  Tensor row_max = context.Empty({logits.dim(0)}, DType::kF32);
  context.kernels->cross_entropy->RowMax(context, logits, range, row_max);
  return row_max;
}

Tensor SumExpAndTarget(const OpContext& context, const Tensor& logits, const Tensor& targets,
                       const Tensor& row_max, const VocabularyRange& range) {
  CheckLogits(logits, range);
  const int64_t n = logits.dim(0);
  CheckTargets(targets, n);
  CheckStatistic(row_max, {n}, "row_max");
  Tensor sums = context.Empty({2, n}, DType::kF32);
  context.kernels->cross_entropy->SumExpAndTarget(context, logits, targets, row_max, range, sums);
  return sums;
}

Tensor CrossEntropyLoss(const OpContext& context, const Tensor& sums) {
  FR_CHECK_EQ(sums.rank(), 2) << "sums of cross entropy";
  const int64_t n = sums.dim(1);
  CheckStatistic(sums, {2, n}, "sums");
  Tensor loss = context.Empty({n}, DType::kF32);
  context.kernels->cross_entropy->Loss(context, sums, loss);
  return loss;
}

Tensor CrossEntropyBackward(const OpContext& context, const Tensor& logits, const Tensor& targets,
                            const Tensor& row_max, const Tensor& sums, const Tensor& dloss,
                            const VocabularyRange& range) {
  CheckBackward(logits, targets, row_max, sums, dloss, range);
  Tensor dlogits = context.Empty(logits.shape(), logits.dtype());
  context.kernels->cross_entropy->Backward(context, logits, targets, row_max, sums, dloss, range,
                                           dlogits);
  return dlogits;
}

void CrossEntropyBackwardInPlace(const OpContext& context, const Tensor& logits,
                                 const Tensor& targets, const Tensor& row_max, const Tensor& sums,
                                 const Tensor& dloss, const VocabularyRange& range) {
  CheckBackward(logits, targets, row_max, sums, dloss, range);
  FR_CHECK(logits.is_contiguous()) << "logits that become their gradient";
  context.kernels->cross_entropy->Backward(context, logits, targets, row_max, sums, dloss, range,
                                           logits);
}

}  // namespace forerun
