// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/vocab_parallel_linear_cross_entropy.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/autograd/contribute.h"
#include "core/base/check.h"
#include "core/ops/copy.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/matmul.h"

namespace forerun {
namespace {

// Rows [begin, end) of x, and what their softmax needs again.
struct Chunk {
  int64_t begin = 0;
  int64_t end = 0;
  Tensor row_max;
  Tensor sums;

  Tensor Rows(const Tensor& x) const { return x.Slice(0, begin, end); }
};

struct Saved {
  Tensor x;        // [n, h]
  Tensor weight;   // [v, h], the lease
  Tensor targets;  // [n]
  VocabularyRange range;
  Shape x_shape;
  const Parameter* table = nullptr;  // null: frozen
  std::vector<Chunk> chunks;
  Tensor kept;  // logits of the last chunk; in backward their gradient
};

Tensor LogitsOf(const OpContext& context, const Tensor& rows, const Tensor& weight) {
  return Matmul(context, rows, weight, {.transpose_b = true});
}

std::vector<Chunk> ChunksOf(int64_t rows, int64_t bytes_a_row, int64_t kept_bytes) {
  const int64_t most = std::max<int64_t>(1, kept_bytes / std::max<int64_t>(1, bytes_a_row));
  const int64_t count = std::max<int64_t>(1, (rows + most - 1) / most);
  std::vector<Chunk> chunks;
  for (int64_t i = 0; i < count; ++i) {
    chunks.push_back({i * rows / count, (i + 1) * rows / count, Tensor(), Tensor()});
  }
  return chunks;
}

class LinearCrossEntropyNode final : public Node {
 public:
  explicit LinearCrossEntropyNode(Saved saved) : saved_(std::move(saved)) {}
  absl::string_view name() const override { return "vocab_parallel_linear_cross_entropy"; }

  void BackwardInput(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) override {
    if (!wanted[0]) return;
    const Tensor dx = context.Empty(saved_.x.shape(), saved_.x.dtype());
    ForEachChunk(context, grad_outputs[0], [&](const Chunk& chunk, const Tensor& dlogits) {
      InputGradient(context, chunk, dlogits, dx);
    });
    grad_inputs[0] = dx.View(saved_.x_shape);
  }

  void BackwardWeight(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                      GradSink& sink) override {
    Contribute(context, sink, *saved_.table, [&](GradSlot slot) {
      ForEachChunk(context, grad_outputs[0], [&](const Chunk& chunk, const Tensor& dlogits) {
        WeightGradient(context, chunk, dlogits, slot);
      });
    });
    saved_.kept = Tensor();
  }

  // A chunk's logits are computed again once for both halves.
  void Backward(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs,
                GradSink& sink) override {
    if (saved_.table == nullptr) return BackwardInput(context, grad_outputs, wanted, grad_inputs);
    if (!wanted[0]) return BackwardWeight(context, grad_outputs, sink);
    const Tensor dx = context.Empty(saved_.x.shape(), saved_.x.dtype());
    Contribute(context, sink, *saved_.table, [&](GradSlot slot) {
      ForEachChunk(context, grad_outputs[0], [&](const Chunk& chunk, const Tensor& dlogits) {
        InputGradient(context, chunk, dlogits, dx);
        WeightGradient(context, chunk, dlogits, slot);
      });
    });
    grad_inputs[0] = dx.View(saved_.x_shape);
  }

 private:
  // Calls visit(chunk, gradient of its logits), the last chunk first: its logits are there.
  void ForEachChunk(const OpContext& context, const Tensor& dloss,
                    absl::FunctionRef<void(const Chunk&, const Tensor&)> visit) {
    const Tensor dlosses = dloss.View({saved_.x.dim(0)});
    for (size_t i = saved_.chunks.size(); i-- > 0;) {
      const Chunk& chunk = saved_.chunks[i];
      const bool last = i + 1 == saved_.chunks.size();
      if (last && kept_is_gradient_) {
        visit(chunk, saved_.kept);
        continue;
      }
      const Tensor logits =
          last ? saved_.kept : LogitsOf(context, chunk.Rows(saved_.x), saved_.weight);
      CrossEntropyBackwardInPlace(context, logits, chunk.Rows(saved_.targets), chunk.row_max,
                                  chunk.sums, chunk.Rows(dlosses), saved_.range);
      kept_is_gradient_ = kept_is_gradient_ || last;
      visit(chunk, logits);
    }
  }

  void InputGradient(const OpContext& context, const Chunk& chunk, const Tensor& dlogits,
                     const Tensor& dx) const {
    MatmulInto(context, dlogits, saved_.weight, {}, chunk.Rows(dx));
  }

  void WeightGradient(const OpContext& context, const Chunk& chunk, const Tensor& dlogits,
                      GradSlot& slot) const {
    const MatmulOptions options{.transpose_a = true, .accumulate = slot.accumulate};
    MatmulInto(context, dlogits, chunk.Rows(saved_.x), options, slot.grad.AsMatrix());
    slot.accumulate = true;
  }

  Saved saved_;
  bool kept_is_gradient_ = false;
};

}  // namespace

Value VocabParallelLinearCrossEntropy(const ForwardContext& context, const Value& x,
                                      const Parameter& table, const Tensor& targets,
                                      comm::ProcessGroup& group,
                                      const LinearCrossEntropyOptions& options,
                                      absl::string_view reader) {
  const OpContext& op = context.op;
  Saved saved;
  saved.x = x.tensor.AsMatrix();
  saved.x_shape = x.tensor.shape();
  saved.weight = context.reader.Read(table, *op.stream, reader).tensor().AsMatrix();
  saved.targets = targets.View({targets.numel()});
  FR_CHECK_EQ(saved.x.dim(0), targets.numel()) << "one target a token";
  const int64_t columns = saved.weight.dim(0);
  saved.range = {group.rank() * columns, options.vocab_size};
  saved.chunks = ChunksOf(saved.x.dim(0), columns * SizeOf(saved.x.dtype()), options.kept_bytes);
  Tensor losses = op.Empty({saved.x.dim(0)}, DType::kF32);
  for (Chunk& chunk : saved.chunks) {
    saved.kept = Tensor();  // before the next one is made
    saved.kept = LogitsOf(op, chunk.Rows(saved.x), saved.weight);
    chunk.row_max = RowMax(op, saved.kept, saved.range);
    group.AllReduce(chunk.row_max, comm::ReduceOp::kMax).Wait(*op.stream);
    chunk.sums =
        SumExpAndTarget(op, saved.kept, chunk.Rows(saved.targets), chunk.row_max, saved.range);
    group.AllReduce(chunk.sums, comm::ReduceOp::kSum).Wait(*op.stream);
    CopyInto(op, CrossEntropyLoss(op, chunk.sums), chunk.Rows(losses));
  }
  Tensor loss = losses.View(targets.shape());
  if (context.tape == nullptr) return Value{std::move(loss)};
  std::vector<const Parameter*> weights;
  if (table.trainable()) weights.push_back(saved.table = &table);
  return context.Record(std::make_unique<LinearCrossEntropyNode>(std::move(saved)), {x},
                        std::move(loss), weights);
}

}  // namespace forerun
