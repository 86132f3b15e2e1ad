// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "core/autograd/functions.h"
#include "core/ops/copy.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"

namespace forerun {
namespace {

class ScaledMeanNode final : public Node {
 public:
  ScaledMeanNode(const Shape& shape, float factor) : shape_(shape), factor_(factor) {}
  absl::string_view name() const override { return "scaled_mean"; }

  // dx[i] = dy * factor / numel. dy stays on its device: it is spread over a column of zeros.
  void BackwardInput(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) override {
    if (!wanted[0]) return;
    const Tensor& dy = grad_outputs[0];
    const float share = factor_ / static_cast<float>(shape_.numel());
    const Tensor value = Scale(context, dy.View(Shape{1}), share);
    const Tensor zeros = context.Empty(Shape{shape_.numel(), 1}, dy.dtype());
    Fill(context, 0.0f, zeros);
    grad_inputs[0] = AddRow(context, zeros, value).View(shape_);
  }

 private:
  const Shape shape_;
  const float factor_;
};

}  // namespace

Value ScaledMean(const ForwardContext& context, const Value& x, float factor) {
  Tensor mean = Scale(context.op, Mean(context.op, x.tensor), factor);
  return context.Record(std::make_unique<ScaledMeanNode>(x.tensor.shape(), factor), {x},
                        std::move(mean));
}

}  // namespace forerun
