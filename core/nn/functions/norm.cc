// SPDX-License-Identifier: Apache-2.0
#include "core/ops/norm.h"

#include <memory>
#include <utility>

#include "core/autograd/contribute.h"
#include "core/nn/functions.h"
#include "core/nn/functions/trainable.h"

namespace forerun {
namespace {

class LayerNormNode final : public Node {
 public:
  // `gamma_value` is undefined where no input gradient is wanted.
  LayerNormNode(const Parameter& gamma, const Parameter& beta, Tensor x, Tensor gamma_value,
                Tensor mean, Tensor rstd)
      : gamma_(gamma),
        beta_(beta),
        x_(std::move(x)),
        gamma_value_(std::move(gamma_value)),
        mean_(std::move(mean)),
        rstd_(std::move(rstd)) {}
  absl::string_view name() const override { return "layer_norm"; }

  void BackwardInput(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) override {
    if (!wanted[0]) return;
    grad_inputs[0] =
        LayerNormBackwardInput(context, x_, gamma_value_, mean_, rstd_, grad_outputs[0]);
    gamma_value_ = Tensor();
  }

  void BackwardWeight(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                      GradSink& sink) override {
    if (!gamma_.trainable() && !beta_.trainable()) return;
    // One pass over x serves both, so both slots are open at once.
    const GradSlot gamma = gamma_.trainable() ? sink.Slot(gamma_) : GradSlot{};
    const GradSlot beta = beta_.trainable() ? sink.Slot(beta_) : GradSlot{};
    LayerNormBackwardWeight(context, x_, mean_, rstd_, grad_outputs[0], gamma.accumulate,
                            gamma.grad, beta.accumulate, beta.grad);
    if (gamma_.trainable()) sink.Contributed(gamma_, context.stream->Record());
    if (beta_.trainable()) sink.Contributed(beta_, context.stream->Record());
  }

 private:
  const Parameter& gamma_;
  const Parameter& beta_;
  const Tensor x_;
  Tensor gamma_value_;
  const Tensor mean_;
  const Tensor rstd_;
};

class RmsNormNode final : public Node {
 public:
  RmsNormNode(const Parameter& gamma, Tensor x, Tensor gamma_value, Tensor rrms)
      : gamma_(gamma),
        x_(std::move(x)),
        gamma_value_(std::move(gamma_value)),
        rrms_(std::move(rrms)) {}
  absl::string_view name() const override { return "rms_norm"; }

  void BackwardInput(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) override {
    if (!wanted[0]) return;
    grad_inputs[0] = RmsNormBackwardInput(context, x_, gamma_value_, rrms_, grad_outputs[0]);
    gamma_value_ = Tensor();
  }

  void BackwardWeight(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                      GradSink& sink) override {
    if (!gamma_.trainable()) return;
    Contribute(context, sink, gamma_, [&](const GradSlot& slot) {
      RmsNormBackwardWeight(context, x_, rrms_, grad_outputs[0], slot.accumulate, slot.grad);
    });
  }

 private:
  const Parameter& gamma_;
  const Tensor x_;
  Tensor gamma_value_;
  const Tensor rrms_;
};

}  // namespace

Value LayerNorm(const ForwardContext& context, const Value& x, const Parameter& gamma,
                const Parameter& beta, float epsilon, absl::string_view reader) {
  const OpContext& op = context.op;
  Tensor scale = context.reader.Read(gamma, *op.stream, reader).tensor();
  const ParamLease shift = context.reader.Read(beta, *op.stream, reader);
  LayerNormResult result = LayerNorm(op, x.tensor, scale, shift.tensor(), epsilon);
  if (x.constant()) scale = Tensor();
  auto node = std::make_unique<LayerNormNode>(gamma, beta, x.tensor, std::move(scale),
                                              std::move(result.mean), std::move(result.rstd));
  return context.Record(std::move(node), {x}, std::move(result.y), Trainable({&gamma, &beta}));
}

Value RmsNorm(const ForwardContext& context, const Value& x, const Parameter& gamma, float epsilon,
              absl::string_view reader) {
  const OpContext& op = context.op;
  Tensor scale = context.reader.Read(gamma, *op.stream, reader).tensor();
  RmsNormResult result = RmsNorm(op, x.tensor, scale, epsilon);
  if (x.constant()) scale = Tensor();
  auto node =
      std::make_unique<RmsNormNode>(gamma, x.tensor, std::move(scale), std::move(result.rrms));
  return context.Record(std::move(node), {x}, std::move(result.y), Trainable({&gamma}));
}

}  // namespace forerun
