// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/forward_order.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"

namespace forerun {
namespace {

// Writes down every read; hands out tensors without memory.
class RecordingReader final : public ParamReader {
 public:
  explicit RecordingReader(const ComputeWork& work) : work_(work) {}

  ParamLease Read(const Parameter& parameter, Stream&, absl::string_view reader) override {
    uses_.push_back(Use{&parameter, std::string(reader), work_});
    return ParamLease(Tensor::Wrap(nullptr, nullptr, parameter.shape(), parameter.dtype(),
                                   Device{DeviceKind::kMeta}, Tensor::Access::kReadOnly));
  }
  std::vector<Use> TakeUses() { return std::move(uses_); }

 private:
  const ComputeWork& work_;
  std::vector<Use> uses_;
};

std::string Names(absl::Span<const Parameter* const> parameters) {
  return absl::StrJoin(parameters, ", ", [](std::string* out, const Parameter* parameter) {
    absl::StrAppend(out, parameter->name());
  });
}

}  // namespace

std::vector<ForwardOrderGraph::Flow> ForwardOrderGraph::FlowOf(
    absl::Span<const Tape::Operator> operators, absl::Span<const Use> uses) {
  absl::flat_hash_map<const Parameter*, std::vector<int>> unclaimed;  // uses, latest first
  for (int i = static_cast<int>(uses.size()) - 1; i >= 0; --i) {
    unclaimed[uses[i].parameter].push_back(i);
  }
  std::vector<Flow> flow;
  for (const Tape::Operator& op : operators) {
    flow.push_back({{op.producers.begin(), op.producers.end()}, {}});
    for (const Parameter* weight : op.weights) {
      std::vector<int>& candidates = unclaimed[weight];
      if (candidates.empty()) continue;
      flow.back().uses.push_back(candidates.back());
      candidates.pop_back();
    }
  }
  return flow;
}

// Passes uses on through operators without weights.
std::vector<std::vector<int>> ForwardOrderGraph::Sources() const {
  std::vector<std::vector<int>> sources(uses_.size());
  std::vector<std::set<int>> reaching(flow_.size());  // uses that flow out of an operator
  for (size_t op = 0; op < flow_.size(); ++op) {
    std::set<int> incoming;
    for (int producer : flow_[op].producers) {
      incoming.insert(reaching[producer].begin(), reaching[producer].end());
    }
    const std::vector<int>& own = flow_[op].uses;
    for (int use : own) sources[use].assign(incoming.begin(), incoming.end());
    reaching[op] = own.empty() ? std::move(incoming) : std::set<int>(own.begin(), own.end());
  }
  return sources;
}

int ForwardOrderGraph::use_count(const Parameter& parameter) const {
  const auto found = use_count_.find(&parameter);
  return found == use_count_.end() ? 0 : found->second;
}

int ForwardOrderGraph::contribution_count(const Parameter& parameter) const {
  const auto found = contribution_count_.find(&parameter);
  return found == contribution_count_.end() ? 0 : found->second;
}

ForwardOrderGraph ForwardOrderGraph::ReboundTo(
    absl::Span<const Parameter* const> parameters_by_id) const {
  const auto twin = [&](const Parameter* parameter) {
    FR_CHECK_LT(static_cast<size_t>(parameter->id()), parameters_by_id.size()) << parameter->name();
    const Parameter* other = parameters_by_id[parameter->id()];
    FR_CHECK_EQ(other->name(), parameter->name()) << "instances of a chunk register alike";
    return other;
  };
  ForwardOrderGraph graph;
  graph.uses_ = uses_;
  graph.flow_ = flow_;
  graph.work_ = work_;
  for (Use& use : graph.uses_) use.parameter = twin(use.parameter);
  for (const Parameter* p : first_use_order_) graph.first_use_order_.push_back(twin(p));
  for (const auto& [p, count] : use_count_) graph.use_count_[twin(p)] = count;
  for (const auto& [p, count] : contribution_count_) graph.contribution_count_[twin(p)] = count;
  return graph;
}

std::string ForwardOrderGraph::ToString() const {
  std::string table =
      absl::StrFormat("%4s  %-48s %-14s %s\n", "use", "parameter", "after", "read by");
  const std::vector<std::vector<int>> sources = Sources();
  for (size_t i = 0; i < uses_.size(); ++i) {
    absl::StrAppendFormat(&table, "%4d  %-48s %-14s %s\n", static_cast<int>(i),
                          uses_[i].parameter->name(), absl::StrJoin(sources[i], ","),
                          uses_[i].reader);
  }
  return table;
}

absl::StatusOr<ForwardOrderGraph> RecordForwardOrder(
    absl::Span<const Parameter* const> parameters,
    absl::FunctionRef<void(ParamReader&, Tape&)> forward, const ComputeWork* work) {
  const ComputeWork none;
  const ComputeWork& done = work != nullptr ? *work : none;
  RecordingReader reader(done);
  Tape tape;
  forward(reader, tape);

  ForwardOrderGraph graph;
  graph.uses_ = reader.TakeUses();
  graph.work_ = done;
  graph.flow_ = ForwardOrderGraph::FlowOf(tape.Operators(), graph.uses_);
  for (const Parameter* parameter : tape.contributions()) ++graph.contribution_count_[parameter];

  const absl::flat_hash_set<const Parameter*> known(parameters.begin(), parameters.end());
  for (const Use& use : graph.uses_) {
    if (!known.contains(use.parameter)) {
      return absl::InvalidArgumentError(
          absl::StrCat("forward order: ", use.reader, " reads parameter ", use.parameter->name(),
                       ", which is not registered in this model chunk"));
    }
    const bool first = ++graph.use_count_[use.parameter] == 1;
    if (first && use.parameter->trainable()) graph.first_use_order_.push_back(use.parameter);
  }

  std::vector<const Parameter*> unused, left_out;
  for (const Parameter* parameter : parameters) {
    if (graph.use_count(*parameter) > 0 || !parameter->trainable()) continue;
    const bool optional = parameter->kind() == ParameterKind::kOptional;
    (optional ? left_out : unused).push_back(parameter);
  }
  if (!unused.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("forward order: no operator of the forward pass reads ", Names(unused),
                     "; declare what a model may leave out as optional"));
  }
  std::sort(left_out.begin(), left_out.end(),
            [](const Parameter* a, const Parameter* b) { return a->name() < b->name(); });
  graph.first_use_order_.insert(graph.first_use_order_.end(), left_out.begin(), left_out.end());
  return graph;
}

}  // namespace forerun
