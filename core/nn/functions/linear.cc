// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "core/autograd/contribute.h"
#include "core/nn/functions.h"
#include "core/nn/functions/trainable.h"
#include "core/ops/activation.h"
#include "core/ops/matmul.h"
#include "core/ops/reduce.h"

namespace forerun {
namespace {

Shape WithLastDim(Shape shape, int64_t extent) {
  shape.set(-1, extent);
  return shape;
}

// What both forms of a linear layer keep for backward.
struct SavedLinear {
  Tensor x;       // [m, k]
  Tensor weight;  // [n, k], the lease; undefined where no input gradient is wanted
  Shape x_shape;
  const Parameter* weight_parameter = nullptr;  // null: frozen
  const Parameter* bias_parameter = nullptr;    // null: frozen, or none
  GeluKind gelu = GeluKind::kNone;
  Tensor pre_activation;  // [m, n], with a gelu
};

class LinearNode final : public Node {
 public:
  explicit LinearNode(SavedLinear saved) : saved_(std::move(saved)) {}
  absl::string_view name() const override {
    return saved_.gelu == GeluKind::kNone ? "linear" : "linear_gelu";
  }

  // dx = dpre w. The lease ends here, so that deferred weight gradients hold none.
  void BackwardInput(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) override {
    if (!wanted[0]) return;
    const Tensor dpre = PreActivationGradient(context, grad_outputs[0]);
    grad_inputs[0] = Matmul(context, dpre, saved_.weight).View(saved_.x_shape);
    saved_.weight = Tensor();
  }

  // dw = dpre^T x and db = the sum of dpre's rows, straight into the slots.
  void BackwardWeight(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                      GradSink& sink) override {
    if (saved_.weight_parameter == nullptr && saved_.bias_parameter == nullptr) return;
    const Tensor dpre = PreActivationGradient(context, grad_outputs[0]);
    if (saved_.weight_parameter != nullptr) {
      Contribute(context, sink, *saved_.weight_parameter, [&](const GradSlot& slot) {
        const MatmulOptions options{.transpose_a = true, .accumulate = slot.accumulate};
        MatmulInto(context, dpre, saved_.x, options, slot.grad.AsMatrix());
      });
    }
    if (saved_.bias_parameter != nullptr) {
      Contribute(context, sink, *saved_.bias_parameter, [&](const GradSlot& slot) {
        SumRows(context, dpre, slot.accumulate, slot.grad.View(Shape{dpre.dim(1)}));
      });
    }
  }

 private:
  // The gradient before the activation, [m, n]: computed once, for both halves.
  Tensor PreActivationGradient(const OpContext& context, const Tensor& dy) {
    if (saved_.gelu == GeluKind::kNone) return dy.AsMatrix();
    if (!dpre_.defined()) {
      dpre_ = GeluBackward(context, saved_.pre_activation, dy.AsMatrix(), saved_.gelu);
      saved_.pre_activation = Tensor();
    }
    return dpre_;
  }

  SavedLinear saved_;
  Tensor dpre_;
};

}  // namespace

Value LinearGelu(const ForwardContext& context, const Value& x, const Parameter& weight,
                 const Parameter* bias, GeluKind gelu, absl::string_view reader) {
  const OpContext& op = context.op;
  const Tensor w = context.reader.Read(weight, *op.stream, reader).tensor().AsMatrix();
  const Tensor rows = x.tensor.AsMatrix();
  const auto weights = Trainable({&weight, bias});
  const bool recorded = context.tape != nullptr && !(x.constant() && weights.empty());

  MatmulOptions options{.transpose_b = true, .gelu = gelu};
  if (bias != nullptr) {
    const Tensor b = context.reader.Read(*bias, *op.stream, reader).tensor();
    options.bias = b.View(Shape{b.numel()});
  }
  if (recorded && gelu != GeluKind::kNone) {
    options.pre_activation = op.Empty(Shape{rows.dim(0), w.dim(0)}, rows.dtype());
  }
  Tensor y = Matmul(op, rows, w, options).View(WithLastDim(x.tensor.shape(), w.dim(0)));
  if (!recorded) return Value{std::move(y)};

  SavedLinear saved{.x_shape = x.tensor.shape(), .gelu = gelu};
  if (!x.constant()) saved.weight = w;
  if (weight.trainable()) {
    saved.x = rows;
    saved.weight_parameter = &weight;
  }
  if (bias != nullptr && bias->trainable()) saved.bias_parameter = bias;
  saved.pre_activation = options.pre_activation;
  return context.Record(std::make_unique<LinearNode>(std::move(saved)), {x}, std::move(y), weights);
}

Value Linear(const ForwardContext& context, const Value& x, const Parameter& weight,
             const Parameter* bias, absl::string_view reader) {
  return LinearGelu(context, x, weight, bias, GeluKind::kNone, reader);
}

}  // namespace forerun
