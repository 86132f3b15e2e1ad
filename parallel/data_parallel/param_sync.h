// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace forerun {

// In which order buckets are gathered, and how far ahead.
struct GatherPlan {
  std::vector<int> order;      // a permutation of the buckets
  std::vector<int64_t> bytes;  // by bucket
  // Bytes issued and not completed up to which the chain goes on by itself; one gather may always
  // be in flight. 0: nothing starts before it is wanted, or the step's reads have ended.
  int64_t window_bytes = 0;
};

// The chain of parameter all-gathers: a passive state machine. Events go in, and each returns the
// gathers to start now, in order; there is no thread, no clock and no message in here, so what is
// proved about it is what runs.
//
// A bucket goes round once a step:   current -> accepted -> published -> in flight -> current
// Its version is the number of steps that were accepted for it; while it is not current no reader
// may see it.
//
// Invariants
//  1. Gathers are issued in plan order, each bucket once a step, whatever order readers come in: a
//     reader that wants a bucket the chain has not reached advances the chain through all earlier
//     buckets (never a jump). So all ranks issue one sequence, even if they read in other orders.
//  2. A bucket is gathered only after it was published: after its own update ended.
//  3. Within the window only a completion or a publication lets the next gather go, never a read
//     of what is already current.
//  4. A bucket is accepted again only when current: what nobody read in a step is gathered all the
//     same.
// Not thread-safe: the driver holds a lock around every call.
class ParamSync {
 public:
  explicit ParamSync(GatherPlan plan);

  // The optimizer will now write this rank's shard: the bucket's version advances, and readers
  // wait from now on. The bucket is current.
  void OnAccepted(int bucket);
  // This rank's shard holds the new values.
  std::vector<int> OnPublished(int bucket);
  // The gather has ended and every shard is there.
  std::vector<int> OnGathered(int bucket);
  // A reader needs the bucket, which is not current. It and all earlier ones were published.
  std::vector<int> OnWanted(int bucket);
  // This rank reads no more before its next update. Without a window, what it did not want is
  // gathered now: another rank may be waiting for it.
  std::vector<int> OnReadsEnded();

  // From now on gathers are issued in this order, a permutation of the buckets, the same on every
  // rank. All buckets are current: a step boundary.
  void SetOrder(std::vector<int> order);

  bool Current(int bucket) const { return states_[bucket].phase == Phase::kCurrent; }
  bool Accepted(int bucket) const { return states_[bucket].phase == Phase::kAccepted; }
  int64_t version(int bucket) const { return states_[bucket].version; }
  const GatherPlan& plan() const { return plan_; }

  // All that changes, so that a proof can tell whether it has been in a state before.
  template <typename H>
  friend H AbslHashValue(H h, const ParamSync& sync) {
    return H::combine(std::move(h), sync.plan_.order, sync.states_, sync.next_,
                      sync.bytes_in_flight_);
  }

 private:
  enum class Phase : uint8_t { kCurrent, kAccepted, kPublished, kInFlight };
  struct State {
    Phase phase = Phase::kCurrent;
    int64_t version = 0;

    template <typename H>
    friend H AbslHashValue(H h, const State& state) {
      return H::combine(std::move(h), state.phase, state.version);
    }
  };

  std::vector<int> AdvanceWithinWindow();
  void Issue(std::vector<int>& started);

  GatherPlan plan_;
  std::vector<State> states_;  // by bucket
  size_t next_ = 0;            // index in plan_.order of the next gather
  int64_t bytes_in_flight_ = 0;
};

}  // namespace forerun
