// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace forerun {

// What gradient reduction is planned over: dense parameter indices, their chunks and buckets.
struct ReducePlan {
  std::vector<std::vector<int>> parameters_of_bucket;
  std::vector<int> chunk_of_parameter;
  std::vector<int> order;  // of the buckets: the reverse of first use
  int chunks = 1;
};

// Decides when which bucket's gradients are reduced: a passive state machine, like ParamSync.
//
// A parameter is complete when every microbatch of its chunk has been announced and all announced
// contributions have arrived. A microbatch is announced when its forward pass has ended: its tape
// then fixes how often each parameter will contribute, so nothing is learned from earlier steps,
// and what a branch left out counts as zero at once. A bucket is ready when all its parameters are
// complete.
//
// Invariants
//  1. Buckets are issued in plan order by a cursor, each once a step, whatever order contributions
//     come in; so all ranks issue one sequence.
//  2. A bucket is issued only when ready; a contribution after that is a failed check.
//  3. A parameter without any contribution in the step is zero-filled before its bucket is issued.
// Not thread-safe.
class GradReduce {
 public:
  // What to do now: fill these parameters' gradients with zeros, then reduce these buckets.
  struct Commands {
    std::vector<int> zero_fill;
    std::vector<int> reduce;
  };

  explicit GradReduce(ReducePlan plan);

  // From now on buckets are issued in this order, a permutation of them, the same on every rank.
  // All were issued: a step boundary.
  void SetOrder(std::vector<int> order);

  // Starts a step of so many microbatches for each chunk; the last step's buckets were all issued.
  void BeginStep(int microbatches);
  // The forward pass of one microbatch of a chunk ended; one entry a contribution to come.
  Commands OnAnnounced(int chunk, absl::Span<const int> contributions);
  Commands OnContributed(int parameter);

  // Whether this is the parameter's first contribution of the step, still to be written.
  bool FirstContribution(int parameter) const { return arrived_[parameter] == 0; }
  bool AllIssued() const { return cursor_ == plan_.order.size(); }
  const ReducePlan& plan() const { return plan_; }

  // All that changes, so that a proof can tell whether it has been in a state before.
  template <typename H>
  friend H AbslHashValue(H h, const GradReduce& reduce) {
    return H::combine(std::move(h), reduce.plan_.order, reduce.expected_, reduce.arrived_,
                      reduce.counted_, reduce.incomplete_of_bucket_, reduce.to_announce_,
                      reduce.cursor_);
  }

 private:
  bool Complete(int parameter) const;
  void CompleteIfDone(int parameter, Commands& commands);
  void AdvanceCursor(Commands& commands);

  ReducePlan plan_;
  std::vector<std::vector<int>> buckets_of_parameter_;
  std::vector<std::vector<int>> parameters_of_chunk_;
  std::vector<int> expected_;  // by parameter, of the microbatches announced
  std::vector<int> arrived_;
  std::vector<bool> counted_;              // completion was counted in its buckets
  std::vector<int> incomplete_of_bucket_;  // parameters
  std::vector<int> to_announce_;           // by chunk: microbatches
  size_t cursor_;
};

}  // namespace forerun
