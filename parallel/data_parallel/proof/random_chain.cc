// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/proof/random_chain.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "parallel/data_parallel/bucket_plan.h"
#include "parallel/data_parallel/proof/random_model.h"
#include "parallel/data_parallel/proof/timed_run.h"

namespace forerun::proof {
namespace {

BucketPlanOptions RandomOptions(int ranks, Dice& dice) {
  BucketPlanOptions options;
  options.shards = ranks;
  options.alignment = dice.Chance(0.5f) ? 1 : 64;
  if (dice.Chance(0.6f)) options.bucket_numel = 1 + dice.Below(dice.Chance(0.5f) ? 300 : 4000);
  options.max_bucket_bytes = 512 + dice.Below(8000);
  return options;
}

int64_t RandomWindow(int64_t total, Dice& dice) {
  if (dice.Chance(0.15f)) return 0;
  if (dice.Chance(0.15f)) return int64_t{1} << 40;
  return 1 + static_cast<int64_t>(dice.Below(1000)) * total / 1000;
}

// What every rank does in one step.
struct Step {
  int microbatches;
  bool skipped;   // by the optimizer: nothing is updated
  int new_order;  // index in ChainSpec::orders, or -1
  bool order_before_update;
};

// Writes the programs of all ranks into a spec that has its plans.
class Programmer {
 public:
  // uses_of_chunk: trainable parameters as the graph uses them.
  Programmer(ChainSpec& spec, std::vector<std::vector<int>> uses_of_chunk,
             const std::vector<char>& optional, Dice& dice)
      : spec_(spec), uses_of_chunk_(std::move(uses_of_chunk)), optional_(optional), dice_(dice) {}

  void Write(int ranks) {
    const std::vector<Step> steps = RandomSteps();
    spec_.programs.resize(ranks);
    for (std::vector<Instruction>& program : spec_.programs) {
      program_ = &program;
      habit_ = dice_.Below(3);
      for (const Step& step : steps) Append(step);
      for (int p = 0; p < spec_.parameters(); ++p) Add(Instruction::Kind::kRead, p);
    }
  }

 private:
  // A forward pass whose backward pass is still to come.
  struct Pass {
    std::vector<int> uses;
  };

  std::vector<Step> RandomSteps() {
    std::vector<Step> steps(dice_.Between(1, 4));
    for (Step& step : steps) {
      step = {dice_.Between(1, 4), dice_.Chance(0.1f), -1, dice_.Chance(0.5f)};
      if (!dice_.Chance(0.2f)) continue;
      std::vector<int> order = spec_.gather.order;
      dice_.Shuffle(order);
      step.new_order = static_cast<int>(spec_.orders.size());
      spec_.orders.push_back(std::move(order));
    }
    return steps;
  }

  void Append(const Step& step) {
    const auto set_order = [&](bool here) {
      if (here && step.new_order >= 0) Add(Instruction::Kind::kSetOrder, step.new_order);
    };
    set_order(!step.order_before_update);
    Add(Instruction::Kind::kBeginStep, step.microbatches);
    AppendPasses(step.microbatches);
    Add(Instruction::Kind::kAwaitReductions);
    set_order(step.order_before_update);
    if (step.skipped) return;
    for (int b = 0; b < spec_.buckets(); ++b) {
      Add(Instruction::Kind::kAccept, b);
      Add(Instruction::Kind::kPublish, b);
    }
  }

  // Forward passes in any order over chunks, each backward pass any time after its own.
  void AppendPasses(int microbatches) {
    std::vector<int> chunks;
    for (size_t c = 0; c < uses_of_chunk_.size(); ++c) {
      chunks.insert(chunks.end(), microbatches, static_cast<int>(c));
    }
    dice_.Shuffle(chunks);
    std::vector<Pass> pending;
    while (!chunks.empty() || !pending.empty()) {
      if (pending.empty() || (!chunks.empty() && dice_.Chance(0.5f))) {
        pending.push_back(Forward(chunks.back()));
        chunks.pop_back();
      } else {
        const auto pass = pending.begin() + dice_.Below(static_cast<int>(pending.size()));
        Backward(*pass);
        pending.erase(pass);
      }
    }
  }

  Pass Forward(int chunk) {
    Pass pass;
    for (int parameter : uses_of_chunk_[chunk]) {
      if (optional_[parameter] && dice_.Chance(0.4f)) continue;
      pass.uses.insert(pass.uses.end(), dice_.Chance(0.05f) ? 2 : 1, parameter);
    }
    Disturb(pass.uses);
    for (int parameter : pass.uses) Add(Instruction::Kind::kRead, parameter);
    Add(Instruction::Kind::kAnnounce, chunk, static_cast<int64_t>(spec_.announcements.size()));
    spec_.announcements.push_back(pass.uses);
    return pass;
  }

  // Some ranks follow the graph, some nearly, some not at all.
  void Disturb(std::vector<int>& uses) {
    if (uses.empty() || habit_ == 0) return;
    if (habit_ == 2) return dice_.Shuffle(uses);
    std::swap(uses[dice_.Below(static_cast<int>(uses.size()))],
              uses[dice_.Below(static_cast<int>(uses.size()))]);
  }

  void Backward(Pass& pass) {
    std::reverse(pass.uses.begin(), pass.uses.end());
    if (dice_.Chance(0.3f)) dice_.Shuffle(pass.uses);
    const bool recompute = dice_.Chance(0.4f);
    for (int parameter : pass.uses) {
      if (recompute && dice_.Chance(0.7f)) Add(Instruction::Kind::kRead, parameter);
      Add(Instruction::Kind::kContribute, parameter, 1 + dice_.Below(1 << 20));
    }
  }

  void Add(Instruction::Kind kind, int subject = 0, int64_t value = 0) {
    program_->push_back({kind, subject, value});
  }

  ChainSpec& spec_;
  const std::vector<std::vector<int>> uses_of_chunk_;
  const std::vector<char>& optional_;  // by parameter
  Dice& dice_;
  std::vector<Instruction>* program_ = nullptr;
  int habit_ = 0;
};

// Chunks are runs of the forward pass; a parameter belongs to that of its first use.
std::vector<std::vector<int>> UsesOfChunk(const ForwardOrderGraph& graph, const BucketPlan& plan,
                                          const std::vector<int>& chunk_of_parameter, int chunks) {
  std::vector<std::vector<int>> uses(chunks);
  std::vector<char> seen(chunk_of_parameter.size(), 0);
  const auto add = [&](int parameter) {
    seen[parameter] = 1;
    uses[chunk_of_parameter[parameter]].push_back(parameter);
  };
  for (const Use& use : graph.uses()) {
    if (use.parameter->trainable()) add(plan.IndexOf(*use.parameter));
  }
  // Optional ones that the recorded pass left out are used by others.
  for (size_t p = 0; p < seen.size(); ++p) {
    if (!seen[p]) add(static_cast<int>(p));
  }
  return uses;
}

void SetPlans(const BucketPlan& plan, ChainSpec& spec, Dice& dice) {
  int64_t total = 0;
  spec.buckets_of_parameter.resize(plan.parameters().size());
  for (const Bucket& bucket : plan.buckets()) {
    const int index = spec.buckets();
    spec.gather.order.push_back(index);
    spec.gather.bytes.push_back(bucket.bytes());
    total += bucket.bytes();
    std::vector<int>& members = spec.reduce.parameters_of_bucket.emplace_back();
    for (const BucketPiece& piece : bucket.pieces) {
      members.push_back(plan.IndexOf(*piece.parameter));
      spec.buckets_of_parameter[members.back()].push_back(index);
    }
  }
  spec.gather.window_bytes = RandomWindow(total, dice);
  spec.reduce.order.assign(spec.gather.order.rbegin(), spec.gather.order.rend());
  for (int p = 0; p < spec.parameters(); ++p) {
    spec.awaited_of_parameter.emplace_back(plan.BucketsOf(p).begin(), plan.BucketsOf(p).end());
  }
}

}  // namespace

ChainSpec RandomChain(Dice& dice) {
  const RandomModel model(dice);
  const ForwardOrderGraph& graph = model.graph();
  const int ranks = dice.Between(1, 8);
  const BucketPlan plan(graph.first_use_order(), RandomOptions(ranks, dice));
  ChainSpec spec;
  SetPlans(plan, spec, dice);
  spec.poison = dice.Chance(0.5f);

  spec.reduce.chunks = dice.Between(1, 2);
  const int second_chunk = dice.Below(spec.parameters() + 1);
  std::vector<char> optional;
  for (int p = 0; p < spec.parameters(); ++p) {
    optional.push_back(plan.parameters()[p]->kind() == ParameterKind::kOptional);
    spec.reduce.chunk_of_parameter.push_back(spec.reduce.chunks == 2 && p >= second_chunk);
  }
  auto uses = UsesOfChunk(graph, plan, spec.reduce.chunk_of_parameter, spec.reduce.chunks);
  Programmer(spec, std::move(uses), optional, dice).Write(ranks);
  spec.Complete();
  return spec;
}

absl::optional<Fault> RunRandomCase(uint64_t seed) {
  Dice dice(RandomKey::Root(seed).Fold("chain"));
  const ChainSpec spec = RandomChain(dice);
  const int scales[] = {0, 1, 10, 100};
  const Delays delays{scales[dice.Below(4)], scales[dice.Below(4)] * 10};
  return RunInVirtualTime(spec, delays, dice);
}

}  // namespace forerun::proof
