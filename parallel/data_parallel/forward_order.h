// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/autograd/param_reader.h"
#include "core/autograd/parameter.h"
#include "core/autograd/tape.h"
#include "core/ops/compute_work.h"

// The registered forward-order graph: which parameters a chunk's forward pass reads, in which
// order, and what flows from one use into the next. It is recorded from the chunk's own Forward on
// meta tensors, so nobody has to declare it and it cannot drift from the code. Everything that
// depends on order (buckets, gathers, reductions) is planned from it; the order in which
// parameters were registered is never looked at.
namespace forerun {

// One read of one parameter by one operator.
struct Use {
  const Parameter* parameter = nullptr;
  std::string reader;  // the layer that read it
  ComputeWork before;  // of the forward pass, done when the read comes
};

// Immutable. Parameters are those of one chunk and outlive the graph.
class ForwardOrderGraph {
 public:
  // In forward order; position is the index.
  absl::Span<const Use> uses() const { return uses_; }

  // Every trainable parameter once: used ones by first use, then optional ones that the recorded
  // pass left out, by name. Independent of registration order.
  absl::Span<const Parameter* const> first_use_order() const { return first_use_order_; }

  // Edges, by use: the uses whose results flow into it with no other use between, ascending. Frozen
  // parameters have none and are none: they contribute to no gradient, so the tape does not know
  // them. Found when asked for: along a residual stream there are as many as layers squared.
  std::vector<std::vector<int>> Sources() const;

  // Of the whole forward pass.
  const ComputeWork& work() const { return work_; }

  // Reads, and gradient contributions, that one forward pass makes of a parameter.
  int use_count(const Parameter& parameter) const;
  int contribution_count(const Parameter& parameter) const;

  // The same graph of another instance of the chunk, whose parameters have the same ids and names:
  // recorded on an instance made for meta tensors, used with the one that trains.
  ForwardOrderGraph ReboundTo(absl::Span<const Parameter* const> parameters_by_id) const;

  // A table, one line a use.
  std::string ToString() const;

 private:
  friend absl::StatusOr<ForwardOrderGraph> RecordForwardOrder(
      absl::Span<const Parameter* const>, absl::FunctionRef<void(ParamReader&, Tape&)>,
      const ComputeWork*);

  // An operator that the tape has recorded: those whose results it takes, and the uses it makes.
  struct Flow {
    std::vector<int> producers;
    std::vector<int> uses;
  };
  static std::vector<Flow> FlowOf(absl::Span<const Tape::Operator> operators,
                                  absl::Span<const Use> uses);

  std::vector<Use> uses_;
  std::vector<Flow> flow_;
  std::vector<const Parameter*> first_use_order_;
  ComputeWork work_;
  absl::flat_hash_map<const Parameter*, int> use_count_;
  absl::flat_hash_map<const Parameter*, int> contribution_count_;
};

// Runs `forward` once with a recording reader, whose leases are meta tensors, and an empty tape.
// `parameters` are all parameters of the chunk. Fails, naming the parameters, when a trainable one
// that is not optional is never read, or when one is read that is not of this chunk. `work` is what
// the kernels of the pass have counted so far (meta::CountingKernels), and is looked at by each
// read; null: the graph has no work.
absl::StatusOr<ForwardOrderGraph> RecordForwardOrder(
    absl::Span<const Parameter* const> parameters,
    absl::FunctionRef<void(ParamReader&, Tape&)> forward, const ComputeWork* work = nullptr);

}  // namespace forerun
