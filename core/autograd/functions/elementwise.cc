// SPDX-License-Identifier: Apache-2.0
#include "core/ops/elementwise.h"

#include <memory>
#include <utility>

#include "core/autograd/functions.h"
#include "core/ops/activation.h"

namespace forerun {
namespace {

class AddNode final : public Node {
 public:
  absl::string_view name() const override { return "add"; }
  void BackwardInput(const OpContext&, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) override {
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i]) grad_inputs[i] = grad_outputs[0];
    }
  }
};

class GeluNode final : public Node {
 public:
  GeluNode(Tensor x, GeluKind kind) : x_(std::move(x)), kind_(kind) {}
  absl::string_view name() const override { return "gelu"; }
  void BackwardInput(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) override {
    if (wanted[0]) grad_inputs[0] = GeluBackward(context, x_, grad_outputs[0], kind_);
  }

 private:
  const Tensor x_;
  const GeluKind kind_;
};

class SwigluNode final : public Node {
 public:
  explicit SwigluNode(Tensor x) : x_(std::move(x)) {}
  absl::string_view name() const override { return "swiglu"; }
  void BackwardInput(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) override {
    if (wanted[0]) grad_inputs[0] = SwigluBackward(context, x_, grad_outputs[0]);
  }

 private:
  const Tensor x_;
};

}  // namespace

Value Add(const ForwardContext& context, const Value& a, const Value& b) {
  Tensor sum = Add(context.op, a.tensor, b.tensor);
  return context.Record(std::make_unique<AddNode>(), {a, b}, std::move(sum));
}

Value Gelu(const ForwardContext& context, const Value& x, GeluKind kind) {
  Tensor y = Gelu(context.op, x.tensor, kind);
  return context.Record(std::make_unique<GeluNode>(x.tensor, kind), {x}, std::move(y));
}

Value Swiglu(const ForwardContext& context, const Value& x) {
  Tensor y = Swiglu(context.op, x.tensor);
  return context.Record(std::make_unique<SwigluNode>(x.tensor), {x}, std::move(y));
}

}  // namespace forerun
