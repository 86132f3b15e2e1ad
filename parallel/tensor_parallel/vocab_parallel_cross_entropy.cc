// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/vocab_parallel_cross_entropy.h"

#include <memory>
#include <utility>

#include "core/base/check.h"
#include "core/ops/cross_entropy.h"

namespace forerun {
namespace {

// What the forward pass leaves for the backward one.
struct Saved {
  Tensor logits;   // [n, v], this rank's columns
  Tensor targets;  // [n]
  Tensor row_max;
  Tensor sums;
  VocabularyRange range;
  Shape shape;  // of the logits
};

class VocabParallelCrossEntropyNode final : public Node {
 public:
  explicit VocabParallelCrossEntropyNode(Saved saved) : saved_(std::move(saved)) {}
  absl::string_view name() const override { return "vocab_parallel_cross_entropy"; }

  // Every rank has the whole sums, so this is local.
  void BackwardInput(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool>, absl::Span<Tensor> grad_inputs) override {
    const Tensor dloss = grad_outputs[0].View(saved_.targets.shape());
    grad_inputs[0] = CrossEntropyBackward(context, saved_.logits, saved_.targets, saved_.row_max,
                                          saved_.sums, dloss, saved_.range)
                         .View(saved_.shape);
  }

 private:
  const Saved saved_;
};

}  // namespace

Value VocabParallelCrossEntropy(const ForwardContext& context, const Value& logits,
                                const Tensor& targets, int64_t vocab_size,
                                comm::ProcessGroup& group) {
  const OpContext& op = context.op;
  Saved saved;
  saved.shape = logits.tensor.shape();
  saved.logits = logits.tensor.AsMatrix();
  saved.targets = targets.View({targets.numel()});
  FR_CHECK_EQ(saved.logits.dim(0), targets.numel()) << "one target a token";
  saved.range = {.first_column = group.rank() * saved.logits.dim(1), .valid_columns = vocab_size};

  saved.row_max = RowMax(op, saved.logits, saved.range);
  group.AllReduce(saved.row_max, comm::ReduceOp::kMax).Wait(*op.stream);
  saved.sums = SumExpAndTarget(op, saved.logits, saved.targets, saved.row_max, saved.range);
  group.AllReduce(saved.sums, comm::ReduceOp::kSum).Wait(*op.stream);

  Tensor loss = CrossEntropyLoss(op, saved.sums).View(targets.shape());
  return context.Record(std::make_unique<VocabParallelCrossEntropyNode>(std::move(saved)), {logits},
                        std::move(loss));
}

}  // namespace forerun
