// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "core/autograd/contribute.h"
#include "core/nn/functions.h"
#include "core/nn/functions/trainable.h"
#include "core/ops/elementwise.h"
#include "core/ops/reduce.h"

namespace forerun {
namespace {

class AddBiasNode final : public Node {
 public:
  explicit AddBiasNode(const Parameter* bias) : bias_(bias) {}
  absl::string_view name() const override { return "add_bias"; }
  void BackwardInput(const OpContext&, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) override {
    if (wanted[0]) grad_inputs[0] = grad_outputs[0];
  }
  void BackwardWeight(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                      GradSink& sink) override {
    if (!bias_->trainable()) return;
    Contribute(context, sink, *bias_, [&](const GradSlot& slot) {
      const Tensor dy = grad_outputs[0].AsMatrix();
      SumRows(context, dy, slot.accumulate, slot.grad.View(Shape{dy.dim(1)}));
    });
  }

 private:
  const Parameter* const bias_;
};

}  // namespace

Value AddBias(const ForwardContext& context, const Value& x, const Parameter& bias,
              absl::string_view reader) {
  const Tensor b = context.reader.Read(bias, *context.op.stream, reader).tensor();
  Tensor y = AddRow(context.op, x.tensor, b.View(Shape{b.numel()}));
  return context.Record(std::make_unique<AddBiasNode>(&bias), {x}, std::move(y),
                        Trainable({&bias}));
}

}  // namespace forerun
