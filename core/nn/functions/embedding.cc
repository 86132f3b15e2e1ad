// SPDX-License-Identifier: Apache-2.0
#include "core/ops/embedding.h"

#include <memory>
#include <utility>

#include "core/autograd/contribute.h"
#include "core/base/check.h"
#include "core/nn/functions.h"
#include "core/nn/functions/trainable.h"
#include "core/ops/copy.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"

namespace forerun {
namespace {

class EmbeddingNode final : public Node {
 public:
  EmbeddingNode(const Parameter& table, Tensor tokens, int64_t first_row)
      : table_(table), tokens_(std::move(tokens)), first_row_(first_row) {}
  absl::string_view name() const override { return "embedding"; }
  void BackwardInput(const OpContext&, absl::Span<const Tensor>, absl::Span<const bool>,
                     absl::Span<Tensor>) override {}
  // Recorded only for a trainable table: there is no other input.
  void BackwardWeight(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                      GradSink& sink) override {
    Contribute(context, sink, table_, [&](const GradSlot& slot) {
      EmbeddingBackward(context, tokens_, grad_outputs[0], first_row_, slot.accumulate, slot.grad);
    });
  }

 private:
  const Parameter& table_;
  const Tensor tokens_;
  const int64_t first_row_;
};

// Sample `sample` of x [s, b, h]: the matrix [s, h].
Tensor SampleOf(const Tensor& x, int64_t sample) {
  const int64_t h = x.dim(2);
  return x.View(Shape{x.dim(0), x.dim(1) * h}).Slice(1, sample * h, (sample + 1) * h);
}

class AddPositionsNode final : public Node {
 public:
  explicit AddPositionsNode(const Parameter& table) : table_(table) {}
  absl::string_view name() const override { return "add_positions"; }
  void BackwardInput(const OpContext&, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) override {
    if (wanted[0]) grad_inputs[0] = grad_outputs[0];
  }
  void BackwardWeight(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                      GradSink& sink) override {
    if (!table_.trainable()) return;
    Contribute(context, sink, table_,
               [&](const GradSlot& slot) { Write(context, grad_outputs[0], slot); });
  }

 private:
  // Rows 0..s-1 get the sum over samples; the others get nothing, so an overwrite clears them.
  static void Write(const OpContext& context, const Tensor& dy, const GradSlot& slot) {
    const int64_t s = dy.dim(0), b = dy.dim(1), h = dy.dim(2);
    const Tensor samples = context.Empty(Shape{b, s * h}, dy.dtype());
    for (int64_t sample = 0; sample < b; ++sample) {
      const Tensor row = samples.Slice(0, sample, sample + 1).View(Shape{s, h});
      CopyInto(context, SampleOf(dy, sample), row);
    }
    const Tensor used = slot.grad.Slice(0, 0, s).View(Shape{s * h});
    SumRows(context, samples, slot.accumulate, used);
    const int64_t rows = slot.grad.dim(0);
    if (!slot.accumulate && s < rows) Fill(context, 0.0f, slot.grad.Slice(0, s, rows));
  }

  const Parameter& table_;
};

}  // namespace

Value Embedding(const ForwardContext& context, const Tensor& tokens, const Parameter& table,
                int64_t first_row, absl::string_view reader) {
  const ParamLease rows = context.reader.Read(table, *context.op.stream, reader);
  Tensor out = Embedding(context.op, tokens, rows.tensor(), first_row);
  return context.Record(std::make_unique<EmbeddingNode>(table, tokens, first_row), {},
                        std::move(out), Trainable({&table}));
}

Value AddPositions(const ForwardContext& context, const Value& x, const Parameter& table,
                   absl::string_view reader) {
  const OpContext& op = context.op;
  const Shape& shape = x.tensor.shape();
  FR_CHECK_EQ(shape.rank(), 3) << "positions of " << shape << ", read by " << reader;
  const ParamLease rows = context.reader.Read(table, *op.stream, reader);
  FR_CHECK_LE(shape[0], rows.tensor().dim(0)) << "sequence longer than " << table.name();
  const Tensor positions = rows.tensor().Slice(0, 0, shape[0]);
  Tensor y = op.Empty(shape, x.tensor.dtype());
  CopyInto(op, x.tensor, y);
  for (int64_t sample = 0; sample < shape[1]; ++sample) {
    AddInto(op, positions, SampleOf(y, sample));
  }
  return context.Record(std::make_unique<AddPositionsNode>(table), {x}, std::move(y),
                        Trainable({&table}));
}

}  // namespace forerun
