// SPDX-License-Identifier: Apache-2.0
#include "core/autograd/tape.h"

#include <algorithm>
#include <utility>

#include "core/autograd/contribute.h"
#include "core/base/check.h"
#include "core/ops/elementwise.h"

namespace forerun {

struct Tape::Entry {
  std::unique_ptr<Node> node;  // null once both halves ran
  absl::string_view name;
  absl::InlinedVector<int, 4> inputs;
  absl::InlinedVector<int, 2> outputs;
  absl::InlinedVector<const Parameter*, 2> weights;
  absl::InlinedVector<Tensor, 2> grad_outputs;  // kept between the two halves
  bool reached = false;                         // a gradient came to one of its outputs

  void Release() {
    node.reset();
    grad_outputs.clear();
  }
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
  for (const Value& input : inputs) {
    FR_CHECK(input.constant() || Owns(input.id)) << entry.name << " takes a value of another tape";
    entry.inputs.push_back(input.id);
  }
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

void Tape::ReplayInput(const OpContext& context, GradSink* sink, Entry& entry) {
  for (int id : entry.outputs) {
    entry.reached = entry.reached || gradients_[id].defined();
    entry.grad_outputs.push_back(std::move(gradients_[id]));
  }
  if (!entry.reached) return;
  absl::InlinedVector<bool, 4> wanted;
  for (int id : entry.inputs) wanted.push_back(id != Value::kConstant);
  absl::InlinedVector<Tensor, 4> grad_inputs(entry.inputs.size());
  const absl::Span<Tensor> results = absl::MakeSpan(grad_inputs);
  if (sink != nullptr && !entry.weights.empty()) {
    entry.node->Backward(context, entry.grad_outputs, wanted, results, *sink);
  } else {
    entry.node->BackwardInput(context, entry.grad_outputs, wanted, results);
  }
  for (size_t i = 0; i < grad_inputs.size(); ++i) {
    if (wanted[i]) Accumulate(context, entry.inputs[i], grad_inputs[i]);
  }
}

void Tape::ReplayWeight(const OpContext& context, GradSink& sink, Entry& entry) {
  if (entry.reached) {
    entry.node->BackwardWeight(context, entry.grad_outputs, sink);
  } else {
    ContributeZeros(context, sink, entry);
  }
  entry.Release();
}

void Tape::ContributeZeros(const OpContext& context, GradSink& sink, const Entry& entry) {
  for (const Parameter* weight : entry.weights) ContributeZero(context, sink, *weight);
}

void Tape::Replay(const OpContext& context, const Value& output, Tensor grad_output,
                  GradSink* sink) {
  FR_CHECK(!replayed_) << "a tape is replayed once";
  replayed_ = true;
  if (!output.constant()) {
    FR_CHECK(Owns(output.id)) << "the output is no value of this tape";
    Accumulate(context, output.id, grad_output);
    grad_output = Tensor();
  }
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    ReplayInput(context, sink, *entry);
    if (sink != nullptr && !entry->reached) ContributeZeros(context, *sink, *entry);
    if (sink != nullptr || entry->weights.empty()) entry->Release();
  }
}

void Tape::BackwardWeight(const OpContext& context, GradSink& sink) {
  FR_CHECK(replayed_) << "weight gradients come after input gradients";
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (entry->node != nullptr) ReplayWeight(context, sink, *entry);
  }
}

Tensor Tape::LeafGradient(const Value& leaf) const {
  FR_CHECK(Owns(leaf.id) && producer_[leaf.id] == -1) << "not a leaf of this tape";
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
