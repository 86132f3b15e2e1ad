// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/proof/chain_world.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace forerun::proof {
namespace {

constexpr int kPoison = -1;
constexpr int kTorn = -2;
constexpr int64_t kGarbage = int64_t{1} << 50;

}  // namespace

ChainWorld::Rank::Rank(const ChainSpec& spec)
    : sync(spec.gather),
      reduce(spec.reduce),
      order(spec.gather.order),
      holds(spec.buckets(), Hold::kCurrent),
      updates(spec.buckets(), 0),
      shards(spec.buckets() * spec.ranks(), 0),
      slots(spec.first_slot_of_bucket.back(), kGarbage),
      given(spec.buckets(), 0) {}

ChainWorld::ChainWorld(const ChainSpec& spec) : spec_(&spec) {
  for (int rank = 0; rank < spec.ranks(); ++rank) ranks_.push_back(std::make_shared<Rank>(spec));
}

ChainWorld::Rank& ChainWorld::Own(int rank) {
  if (ranks_[rank].use_count() > 1) ranks_[rank] = std::make_shared<Rank>(*ranks_[rank]);
  return *ranks_[rank];
}

std::vector<Choice> ChainWorld::Begin() const {
  std::vector<Choice> possible;
  for (int rank = 0; rank < spec_->ranks(); ++rank) {
    possible.push_back({Choice::Kind::kCompute, static_cast<uint8_t>(rank)});
  }
  return possible;
}

void ChainWorld::Take(const Choice& choice, std::vector<Choice>& possible) {
  possible_ = &possible;
  switch (choice.kind) {
    case Choice::Kind::kCompute: {
      Rank& rank = Own(choice.rank);
      const std::vector<Instruction>& program = spec_->programs[choice.rank];
      if (!Execute(choice.rank, program[rank.next])) return;
      if (++rank.next < program.size()) Enable(Choice::Kind::kCompute, choice.rank);
      return;
    }
    case Choice::Kind::kGathered:
      return EndGather(choice.rank, choice.index);
    case Choice::Kind::kReduced:
      return EndReduction(choice.rank, choice.index);
  }
}

void ChainWorld::CheckEnd() {
  for (int r = 0; r < spec_->ranks(); ++r) {
    const Rank& rank = At(r);
    if (rank.next < spec_->programs[r].size()) {
      return Fail(Property::kNoDeadlock, r, "never does its instruction ", rank.next, " of ",
                  spec_->programs[r].size(), ", blocked on ",
                  rank.blocked_on == kReductions ? "reductions" : "bucket ", rank.blocked_on);
    }
    int updates = 0;
    for (int of_bucket : rank.updates) updates += of_bucket;
    if (rank.gathers_issued != updates || rank.reductions_issued != rank.steps * spec_->buckets()) {
      return Fail(Property::kOnceAStep, r, "issued ", rank.gathers_issued, " gathers after ",
                  updates, " updates and ", rank.reductions_issued, " reductions in ", rank.steps,
                  " steps");
    }
  }
}

bool ChainWorld::Execute(int rank, const Instruction& instruction) {
  switch (instruction.kind) {
    case Instruction::Kind::kBeginStep:
      BeginStep(rank, instruction.subject);
      return true;
    case Instruction::Kind::kRead:
      return Read(rank, instruction.subject);
    case Instruction::Kind::kAnnounce:
      Reduce(rank, Own(rank).reduce.OnAnnounced(instruction.subject,
                                                spec_->announcements[instruction.value]));
      return true;
    case Instruction::Kind::kContribute:
      Contribute(rank, instruction);
      return true;
    case Instruction::Kind::kAwaitReductions:
      return AwaitReductions(rank);
    case Instruction::Kind::kAccept:
      return Accept(rank, instruction.subject);
    case Instruction::Kind::kPublish:
      Publish(rank, instruction.subject);
      return true;
    case Instruction::Kind::kSetOrder:
      return SetOrder(rank, spec_->orders[instruction.subject]);
  }
  return true;
}

bool ChainWorld::SetOrder(int r, const std::vector<int>& order) {
  for (int bucket : order) {
    if (!AwaitCurrent(r, bucket)) return false;
  }
  Rank& rank = Own(r);
  rank.order = order;
  rank.sync.SetOrder(order);
  rank.reduce.SetOrder({order.rbegin(), order.rend()});
  return true;
}

// ---- Parameters.

bool ChainWorld::Read(int rank, int parameter) {
  for (int bucket : spec_->awaited_of_parameter[parameter]) {
    if (!AwaitCurrent(rank, bucket)) return false;
  }
  for (int bucket : spec_->buckets_of_parameter[parameter]) CheckContent(rank, bucket);
  return true;
}

bool ChainWorld::AwaitCurrent(int r, int bucket) {
  Rank& rank = Own(r);
  if (rank.sync.Current(bucket)) return true;
  IssueGathers(r, rank.sync.OnWanted(bucket), bucket);
  rank.blocked_on = bucket;
  return false;
}

void ChainWorld::CheckContent(int r, int bucket) {
  const Rank& rank = At(r);
  for (int shard = 0; shard < spec_->ranks(); ++shard) {
    const int content = rank.shards[bucket * spec_->ranks() + shard];
    if (content == rank.updates[bucket]) continue;
    return Fail(Property::kFreshRead, r, "reads bucket ", bucket, " after ", rank.updates[bucket],
                " updates and sees ", content, " in shard ", shard);
  }
}

bool ChainWorld::Accept(int r, int bucket) {
  if (!AwaitCurrent(r, bucket)) return false;
  Rank& rank = Own(r);
  if (rank.holds[bucket] != Hold::kCurrent) {
    Fail(Property::kNotTouched, r, "updates bucket ", bucket, " whose gather has not ended");
    return true;
  }
  rank.sync.OnAccepted(bucket);
  if (rank.sync.Current(bucket)) {
    Fail(Property::kGateClosed, r, "may read bucket ", bucket, " while it is updated");
  }
  rank.holds[bucket] = Hold::kAccepted;
  ++rank.updates[bucket];
  int* shards = Shards(rank, bucket);
  if (spec_->poison) std::fill(shards, shards + spec_->ranks(), kPoison);
  shards[r] = kTorn;
  return true;
}

void ChainWorld::Publish(int r, int bucket) {
  Rank& rank = Own(r);
  rank.holds[bucket] = Hold::kPublished;
  Shards(rank, bucket)[r] = static_cast<int>(rank.sync.version(bucket));
  IssueGathers(r, rank.sync.OnPublished(bucket), kNothing);
}

// `wanted`: the bucket that a reader asked for, or kNothing where the chain goes on by itself.
void ChainWorld::IssueGathers(int r, const std::vector<int>& started, int wanted) {
  const Rank& rank = At(r);
  const int64_t window = spec_->gather.window_bytes;
  for (int bucket : started) {
    IssueGather(r, bucket);
    const bool fits = window > 0 && (rank.gathers_in_flight == 1 || rank.bytes_in_flight <= window);
    if (wanted == kNothing && !fits) {
      Fail(Property::kWindow, r, "starts bucket ", bucket, " with ", rank.bytes_in_flight,
           " bytes in flight and a window of ", window);
    }
  }
  if (wanted != kNothing && !started.empty() && started.back() != wanted) {
    Fail(Property::kWindow, r, "wants bucket ", wanted, " and gets as far as ", started.back());
  }
  CheckEager(r);
}

void ChainWorld::IssueGather(int r, int bucket) {
  Rank& rank = Own(r);
  const int index = rank.gathers_issued++;
  if (rank.holds[bucket] == Hold::kAccepted) {
    return Fail(Property::kAfterUpdate, r, "gathers bucket ", bucket, " while it is updated");
  }
  const int due = rank.order[index % spec_->buckets()];
  if (rank.holds[bucket] != Hold::kPublished || bucket != due) {
    return Fail(Property::kOnceAStep, r, "gathers bucket ", bucket, " where ", due, " is due");
  }
  rank.holds[bucket] = Hold::kInFlight;
  ++rank.gathers_in_flight;
  rank.bytes_in_flight += spec_->gather.bytes[bucket];
  for (int shard = 0; shard < spec_->ranks(); ++shard) {
    if (shard != r) Shards(rank, bucket)[shard] = kTorn;
  }
  if (Operation* started = Join(gathers_, r, index, bucket)) {
    for (int s = 0; s < spec_->ranks(); ++s) {
      started->data.push_back(At(s).shards[bucket * spec_->ranks() + s]);
    }
    EnableOnAllRanks(Choice::Kind::kGathered, index);
  }
}

void ChainWorld::CheckEager(int r) {
  const Rank& rank = At(r);
  const int64_t window = spec_->gather.window_bytes;
  const int next = rank.order[rank.gathers_issued % spec_->buckets()];
  if (window == 0 || rank.holds[next] != Hold::kPublished) return;
  if (rank.gathers_in_flight > 0 && rank.bytes_in_flight + spec_->gather.bytes[next] > window) {
    return;
  }
  Fail(Property::kEager, r, "holds back bucket ", next, " with ", rank.bytes_in_flight,
       " bytes in flight and a window of ", window);
}

void ChainWorld::EndGather(int r, int index) {
  Rank& rank = Own(r);
  const Operation operation = Leave(gathers_, index);
  const int bucket = operation.bucket;
  if (rank.sync.Current(bucket)) {
    return Fail(Property::kGateClosed, r, "may read bucket ", bucket, " which is being gathered");
  }
  for (int shard = 0; shard < spec_->ranks(); ++shard) {
    if (shard != r) Shards(rank, bucket)[shard] = static_cast<int>(operation.data[shard]);
  }
  rank.holds[bucket] = Hold::kCurrent;
  --rank.gathers_in_flight;
  rank.bytes_in_flight -= spec_->gather.bytes[bucket];
  IssueGathers(r, rank.sync.OnGathered(bucket), kNothing);
  if (rank.blocked_on == bucket && rank.sync.Current(bucket)) Unblock(r);
}

// ---- Gradients.

void ChainWorld::BeginStep(int r, int microbatches) {
  Rank& rank = Own(r);
  ++rank.steps;
  std::fill(rank.given.begin(), rank.given.end(), 0);
  rank.reduce.BeginStep(microbatches);
}

void ChainWorld::Contribute(int r, const Instruction& contribution) {
  Rank& rank = Own(r);
  const int parameter = contribution.subject;
  for (int bucket : spec_->buckets_of_parameter[parameter]) {
    if (!rank.given[bucket]) continue;
    return Fail(Property::kNotTouched, r, "adds to parameter ", parameter, " of bucket ", bucket,
                ", which is being reduced");
  }
  const bool overwrite = rank.reduce.FirstContribution(parameter);
  for (int slot : spec_->slots_of_parameter[parameter]) {
    rank.slots[slot] = (overwrite ? 0 : rank.slots[slot]) + contribution.value;
  }
  Reduce(r, rank.reduce.OnContributed(parameter));
}

void ChainWorld::Reduce(int r, const GradReduce::Commands& commands) {
  for (int parameter : commands.zero_fill) {
    for (int slot : spec_->slots_of_parameter[parameter]) Own(r).slots[slot] = 0;
  }
  for (int bucket : commands.reduce) IssueReduction(r, bucket);
}

void ChainWorld::IssueReduction(int r, int bucket) {
  Rank& rank = Own(r);
  const int index = rank.reductions_issued++;
  const int due = *(rank.order.rbegin() + index % spec_->buckets());
  if (rank.given[bucket] || bucket != due) {
    return Fail(Property::kOnceAStep, r, "reduces bucket ", bucket, " where ", due, " is due");
  }
  rank.given[bucket] = 1;
  if (Operation* started = Join(reductions_, r, index, bucket)) {
    for (int s = spec_->first_slot_of_bucket[bucket]; s < spec_->first_slot_of_bucket[bucket + 1];
         ++s) {
      int64_t& sum = started->data.emplace_back(0);
      for (int from = 0; from < spec_->ranks(); ++from) sum += At(from).slots[s];
    }
    EnableOnAllRanks(Choice::Kind::kReduced, index);
  }
}

void ChainWorld::EndReduction(int r, int index) {
  Rank& rank = Own(r);
  const Operation operation = Leave(reductions_, index);
  const std::vector<int>& parameters = spec_->reduce.parameters_of_bucket[operation.bucket];
  const std::vector<int64_t>& sums = spec_->sums[index / spec_->buckets()];
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (operation.data[i] != sums[parameters[i]]) {
      Fail(Property::kExactSum, r, "gets ", operation.data[i], " for parameter ", parameters[i],
           " where the contributions' sum is ", sums[parameters[i]]);
    }
    rank.slots[spec_->first_slot_of_bucket[operation.bucket] + static_cast<int>(i)] = kGarbage;
  }
  ++rank.reductions_ended;
  if (rank.blocked_on == kReductions && ReductionsEnded(r)) Unblock(r);
}

bool ChainWorld::AwaitReductions(int r) {
  EndReads(r);
  if (ReductionsEnded(r)) return true;
  Own(r).blocked_on = kReductions;
  return false;
}

void ChainWorld::EndReads(int r) {
  const std::vector<int> started = Own(r).sync.OnReadsEnded();
  for (int bucket : started) IssueGather(r, bucket);
  if (!started.empty() && spec_->gather.window_bytes > 0) {
    Fail(Property::kWindow, r, "starts ", started.size(), " gathers because its reads have ended");
  }
  CheckEager(r);
}

bool ChainWorld::ReductionsEnded(int r) const {
  return At(r).reductions_ended == At(r).steps * spec_->buckets();
}

// ---- Between ranks.

ChainWorld::Operation* ChainWorld::Join(std::vector<Operation>& group, int rank, int index,
                                        int bucket) {
  auto found = std::find_if(group.begin(), group.end(),
                            [&](const Operation& operation) { return operation.index == index; });
  if (found == group.end()) found = group.insert(group.end(), Operation{index, bucket, 0, 0, {}});
  if (found->bucket != bucket) {
    Fail(Property::kOneSequence, rank, "issues bucket ", bucket, " where another rank issued ",
         found->bucket);
    return nullptr;
  }
  return ++found->issued == spec_->ranks() ? &*found : nullptr;
}

ChainWorld::Operation ChainWorld::Leave(std::vector<Operation>& group, int index) {
  const auto found = std::find_if(group.begin(), group.end(), [&](const Operation& operation) {
    return operation.index == index;
  });
  ++found->ended;
  Operation operation = *found;
  if (operation.ended == spec_->ranks()) group.erase(found);
  return operation;
}

void ChainWorld::Enable(Choice::Kind kind, int rank, int index) {
  possible_->push_back({kind, static_cast<uint8_t>(rank), index});
}

void ChainWorld::EnableOnAllRanks(Choice::Kind kind, int index) {
  for (int rank = 0; rank < spec_->ranks(); ++rank) Enable(kind, rank, index);
}

void ChainWorld::Unblock(int rank) {
  Own(rank).blocked_on = kNothing;
  Enable(Choice::Kind::kCompute, rank);
}

template <typename... Parts>
void ChainWorld::Fail(Property property, int rank, const Parts&... parts) {
  if (!fault_.has_value()) fault_ = Fault{property, absl::StrCat("rank ", rank, " ", parts...)};
}

}  // namespace forerun::proof
