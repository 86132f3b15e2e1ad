// SPDX-License-Identifier: Apache-2.0
#include "core/autograd/tape.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/ops/elementwise.h"

namespace forerun {

struct Tape::Entry {
  std::unique_ptr<Node> node;  // null once both halves ran
  absl::string_view name;
  absl::InlinedVector<int, 4> inputs;
  absl::InlinedVector<int, 2> outputs;
  absl::InlinedVector<const Parameter*, 2> weights;
  std::vector<Tensor> grad_outputs;  // kept between BackwardInput and BackwardWeight
};

Tape::Tape() = default;
Tape::~Tape() = default;
Tape::Tape(Tape&&) noexcept = default;
Tape& Tape::operator=(Tape&&) noexcept = default;

Value Tape::Leaf(Tensor tensor) {
  producer_.push_back(-1);
  gradients_.emplace_back();
  return Value{std::move(tensor), static_cast<int>(producer_.size()) - 1};
}

std::vector<Value> Tape::Record(std::unique_ptr<Node> node, absl::Span<const Value> inputs,
                                absl::Span<const Tensor> outputs,
                                absl::Span<const Parameter* const> weights) {
  std::vector<Value> values;
  const bool has_gradient =
      !weights.empty() ||
      std::any_of(inputs.begin(), inputs.end(), [](const Value& v) { return !v.constant(); });
  if (!has_gradient) {
    for (const Tensor& output : outputs) values.push_back(Value{output});
    return values;
  }
  Entry entry;
  entry.name = node->name();
  entry.node = std::move(node);
  for (const Value& input : inputs) entry.inputs.push_back(input.id);
  for (const Tensor& output : outputs) {
    values.push_back(Leaf(output));
    producer_.back() = static_cast<int>(entries_.size());
    entry.outputs.push_back(values.back().id);
  }
  entry.weights.assign(weights.begin(), weights.end());
  contributions_.insert(contributions_.end(), weights.begin(), weights.end());
  entries_.push_back(std::move(entry));
  return values;
}

Value Tape::Record1(std::unique_ptr<Node> node, absl::Span<const Value> inputs, Tensor output,
                    absl::Span<const Parameter* const> weights) {
  return std::move(Record(std::move(node), inputs, {std::move(output)}, weights)[0]);
}

void Tape::Backward(const OpContext& context, const Value& output, Tensor grad_output,
                    GradSink& sink) {
  Replay(context, output, std::move(grad_output), &sink);
}

void Tape::BackwardInput(const OpContext& context, const Value& output, Tensor grad_output) {
  Replay(context, output, std::move(grad_output), nullptr);
}

void Tape::Accumulate(const OpContext& context, int id, const Tensor& gradient) {
  if (!gradient.defined()) return;
  Tensor& sum = gradients_[id];
  // Out of place: a gradient may share memory with the one it was made from.
  sum = sum.defined() ? Add(context, sum, gradient) : gradient;
}

void Tape::Replay(const OpContext& context, const Value& output, Tensor grad_output,
                  GradSink* sink) {
  if (output.constant()) return;
  Accumulate(context, output.id, grad_output);
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    FR_CHECK(entry->node != nullptr) << "a tape is replayed once";
    for (int id : entry->outputs) entry->grad_outputs.push_back(std::move(gradients_[id]));
    absl::InlinedVector<bool, 4> wanted;
    for (int id : entry->inputs) wanted.push_back(id != Value::kConstant);
    std::vector<Tensor> grad_inputs(entry->inputs.size());
    entry->node->BackwardInput(context, entry->grad_outputs, wanted, absl::MakeSpan(grad_inputs));
    for (size_t i = 0; i < grad_inputs.size(); ++i) {
      if (wanted[i]) Accumulate(context, entry->inputs[i], grad_inputs[i]);
    }
    if (sink != nullptr) entry->node->BackwardWeight(context, entry->grad_outputs, *sink);
    if (sink != nullptr || entry->weights.empty()) {
      entry->node.reset();
      entry->grad_outputs.clear();
    }
  }
}

void Tape::BackwardWeight(const OpContext& context, GradSink& sink) {
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (entry->node == nullptr) continue;
    entry->node->BackwardWeight(context, entry->grad_outputs, sink);
    entry->node.reset();
    entry->grad_outputs.clear();
  }
}

Tensor Tape::LeafGradient(const Value& leaf) const {
  FR_CHECK(!leaf.constant() && producer_[leaf.id] == -1) << "not a leaf of this tape";
  return gradients_[leaf.id];
}

absl::Span<const Parameter* const> Tape::contributions() const { return contributions_; }

std::vector<Tape::Operator> Tape::Operators() const {
  std::vector<Operator> operators;
  for (const Entry& entry : entries_) {
    Operator op;
    op.name = entry.name;
    for (int id : entry.inputs) {
      if (id != Value::kConstant && producer_[id] >= 0) op.producers.push_back(producer_[id]);
    }
    op.weights = entry.weights;
    operators.push_back(std::move(op));
  }
  return operators;
}

}  // namespace forerun
