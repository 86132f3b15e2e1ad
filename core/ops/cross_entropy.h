// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

namespace forerun {

// Softmax cross entropy in the pieces that a vocabulary split over tensor-parallel ranks needs.
// This rank holds the columns [first_column, first_column + v) of the logits [n, v]; columns at
// or after `valid_columns` of the whole vocabulary are padding, with probability and gradient
// zero. Between the pieces the caller reduces over ranks (nothing to do with one):
//   1. RowMax          then maximum over ranks
//   2. SumExpAndTarget then sum over ranks
//   3. Loss, CrossEntropyBackward: local.
// loss = log(sum_exp) - (target_logit - max), one fp32 value a row; targets are int32 [n].
struct VocabularyRange {
  int64_t first_column = 0;
  int64_t valid_columns = 0;  // of the whole vocabulary
};

Tensor RowMax(const OpContext& context, const Tensor& logits, const VocabularyRange& range);
// fp32 [2, n]: row 0 is sum over valid columns of exp(logit - max), row 1 is (target logit - max),
// zero where another rank holds the target.
Tensor SumExpAndTarget(const OpContext& context, const Tensor& logits, const Tensor& targets,
                       const Tensor& row_max, const VocabularyRange& range);
Tensor CrossEntropyLoss(const OpContext& context, const Tensor& sums);  // fp32 [n]
// dlogits[i, j] = (softmax[i, j] - [j == target_i]) * dloss[i], dtype of logits; dloss fp32 [n].
Tensor CrossEntropyBackward(const OpContext& context, const Tensor& logits, const Tensor& targets,
                            const Tensor& row_max, const Tensor& sums, const Tensor& dloss,
                            const VocabularyRange& range);
// The same into the logits' own memory: `logits` becomes dlogits.
void CrossEntropyBackwardInPlace(const OpContext& context, const Tensor& logits,
                                 const Tensor& targets, const Tensor& row_max, const Tensor& sums,
                                 const Tensor& dloss, const VocabularyRange& range);

class CrossEntropyKernels {
 public:
  virtual ~CrossEntropyKernels() = default;
  virtual void RowMax(const OpContext& context, const Tensor& logits, const VocabularyRange& range,
                      const Tensor& row_max) const = 0;
  virtual void SumExpAndTarget(const OpContext& context, const Tensor& logits,
                               const Tensor& targets, const Tensor& row_max,
                               const VocabularyRange& range, const Tensor& sums) const = 0;
  virtual void Loss(const OpContext& context, const Tensor& sums, const Tensor& loss) const = 0;
  // dlogits may be logits.
  virtual void Backward(const OpContext& context, const Tensor& logits, const Tensor& targets,
                        const Tensor& row_max, const Tensor& sums, const Tensor& dloss,
                        const VocabularyRange& range, const Tensor& dlogits) const = 0;
};

}  // namespace forerun
