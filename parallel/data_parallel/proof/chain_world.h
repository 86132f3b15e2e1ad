// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "parallel/data_parallel/grad_reduce.h"
#include "parallel/data_parallel/param_sync.h"
#include "parallel/data_parallel/proof/chain_spec.h"
#include "parallel/data_parallel/proof/fault.h"

namespace forerun::proof {

// Something that may happen next. What is possible stays possible until it happens.
struct Choice {
  enum class Kind : uint8_t {
    kCompute,   // the rank's next instruction
    kGathered,  // the rank learns that gather `index` of the run has ended
    kReduced,   // the same for a reduction
  };
  Kind kind;
  uint8_t rank;
  int32_t index = 0;
};

// All ranks of a data-parallel group and what they share, without time: a transition system whose
// choices are made by someone else (in virtual time with random delays, or all of them). Each rank
// drives a ParamSync and a GradReduce of its own as the product's drivers do: a read waits for its
// buckets one after the other and tells the chain which it wants; the optimizer ends the reads and
// waits for all reductions, then accepts, updates and publishes bucket by bucket.
//
// Nothing in here believes the state machines. Values are modelled by content:
//  - A rank's copy of a bucket has one number a shard: the version that was published there,
//    kPoison, or kTorn, which is what the own shard holds during its update and all others from
//    the moment the rank issues the gather until it learns of its end.
//  - A gather starts when all ranks have issued it. It copies then; that the source does not
//    change until the operation has ended is checked, so any other moment would give the same.
//  - A gradient is a number for each slot, garbage after each step, overwritten by the first
//    contribution; a reduction adds them up over ranks, and the result is compared with the sum of
//    the numbers that the programs contribute.
// The k-th operation of every rank in a group must be the same one. Operations under way end in
// any order, and each rank learns of an end at a moment of its own.
//
// The first property that is violated is kept, and the world should not be used further. A value:
// copies go their own way. The spec outlives all of them.
class ChainWorld {
 public:
  explicit ChainWorld(const ChainSpec& spec);

  // What is possible at first.
  std::vector<Choice> Begin() const;
  // Makes a choice that is possible; appends what it makes possible.
  void Take(const Choice& choice, std::vector<Choice>& possible);
  // To be called when nothing is possible any more: everybody must have come to an end.
  void CheckEnd();

  const absl::optional<Fault>& fault() const { return fault_; }

  // All that the future depends on, the state machines' own state included.
  template <typename H>
  friend H AbslHashValue(H h, const ChainWorld& world) {
    for (const std::shared_ptr<Rank>& rank : world.ranks_) h = H::combine(std::move(h), *rank);
    return H::combine(std::move(h), world.gathers_, world.reductions_);
  }

 private:
  enum class Hold : uint8_t { kCurrent, kAccepted, kPublished, kInFlight };
  static constexpr int kNothing = -1;
  static constexpr int kReductions = -2;  // beside buckets, in Rank::blocked_on

  struct Rank {
    explicit Rank(const ChainSpec& spec);

    ParamSync sync;
    GradReduce reduce;
    size_t next = 0;  // instruction
    int blocked_on = kNothing;
    int steps = 0;
    std::vector<int> order;  // of gathers
    // Parameters, by bucket.
    std::vector<Hold> holds;
    std::vector<int> updates;  // accepted
    std::vector<int> shards;   // content, by bucket and rank
    int gathers_issued = 0;
    int gathers_in_flight = 0;
    int64_t bytes_in_flight = 0;
    // Gradients.
    std::vector<int64_t> slots;
    std::vector<char> given;  // by bucket: to this step's reduction
    int reductions_issued = 0;
    int reductions_ended = 0;

    template <typename H>
    friend H AbslHashValue(H h, const Rank& r) {
      return H::combine(std::move(h), r.sync, r.reduce, r.next, r.blocked_on, r.steps, r.order,
                        r.holds, r.updates, r.shards, r.gathers_issued, r.gathers_in_flight,
                        r.bytes_in_flight, r.slots, r.given, r.reductions_issued,
                        r.reductions_ended);
    }
  };

  // One that some rank has issued and not all know to have ended.
  struct Operation {
    int index;  // the how manyth of its group
    int bucket;
    int issued = 0;             // ranks
    int ended = 0;              // ranks
    std::vector<int64_t> data;  // copied when it starts

    template <typename H>
    friend H AbslHashValue(H h, const Operation& o) {
      return H::combine(std::move(h), o.index, o.bucket, o.issued, o.ended, o.data);
    }
  };

  const Rank& At(int rank) const { return *ranks_[rank]; }
  Rank& Own(int rank);

  // Instructions. False: the rank is blocked and tries again later.
  bool Execute(int rank, const Instruction& instruction);
  bool Read(int rank, int parameter);
  bool Accept(int rank, int bucket);
  void Publish(int rank, int bucket);
  void BeginStep(int rank, int microbatches);
  void Contribute(int rank, const Instruction& instruction);
  void EndReads(int rank);
  bool ReductionsEnded(int rank) const;
  bool AwaitReductions(int rank);
  bool SetOrder(int rank, const std::vector<int>& order);

  bool AwaitCurrent(int rank, int bucket);
  void CheckContent(int rank, int bucket);
  void IssueGathers(int rank, const std::vector<int>& started, int wanted);
  void IssueGather(int rank, int bucket);
  int* Shards(Rank& rank, int bucket) const { return rank.shards.data() + bucket * spec_->ranks(); }
  void CheckEager(int rank);
  void EndGather(int rank, int index);

  void Reduce(int rank, const GradReduce::Commands& commands);
  void IssueReduction(int rank, int bucket);
  void EndReduction(int rank, int index);

  // The rank issues its next operation of a group; the operation if it starts by that.
  Operation* Join(std::vector<Operation>& group, int rank, int index, int bucket);
  Operation Leave(std::vector<Operation>& group, int index);
  void Enable(Choice::Kind kind, int rank, int index = 0);
  void EnableOnAllRanks(Choice::Kind kind, int index);
  void Unblock(int rank);
  template <typename... Parts>
  void Fail(Property property, int rank, const Parts&... parts);

  const ChainSpec* spec_;
  std::vector<std::shared_ptr<Rank>> ranks_;  // shared by copies until one of them writes
  std::vector<Operation> gathers_;
  std::vector<Operation> reductions_;
  std::vector<Choice>* possible_ = nullptr;  // of the call that is running
  absl::optional<Fault> fault_;
};

}  // namespace forerun::proof
