// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/nn/registry.h"
#include "core/random/random.h"
#include "gtest/gtest.h"
#include "optim/distributed_optimizer.h"
#include "optim/testing/optimizer_rank.h"
#include "optim/testing/state_map.h"
#include "parallel/data_parallel/bucket_buffer.h"
#include "parallel/data_parallel/bucket_plan.h"
#include "parallel/data_parallel/grad_reducer.h"
#include "parallel/data_parallel/param_gate.h"
#include "parallel/data_parallel/testing/rank_job.h"
#include "parallel/data_parallel/testing/test_parameters.h"

// What outlives the optimizer (its checkpoint), and what it shares with other stages.
namespace forerun {
namespace {

double NoClock() { return 0.0; }

float Gradient(int step, const Parameter& parameter, int64_t i) {
  const RandomKey key = RandomKey::Root(12).Fold(parameter.name()).Fold(step);
  return std::floor(UniformAt(key, i) * 32.0f) / 16.0f - 1.0f;
}

struct Layout {
  int ranks;
  bool sharded;
};

// Trains steps [first, last] from `from`, or from the start, and saves.
std::unique_ptr<StateMap> Train(const TestParameters& parameters, const Layout& layout,
                                const StateMap* from, int first, int last) {
  auto saved = std::make_unique<StateMap>();
  const absl::Status status =
      RankJob(layout.ranks).Run([&](const RankContext& context) -> absl::Status {
        OptimizerRank::Options options;
        options.sharded = layout.sharded;
        OptimizerRank rank(parameters, context, options, from);
        for (int step = first; step <= last; ++step) {
          const auto result = rank.Step(step, Gradient);
          if (!result.ok()) return result.status();
        }
        return rank.Save(*saved);
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(saved->Complete());
  return saved;
}

TEST(DistributedOptimizerState, ResumesWithTheSameBitsAtTheSameAndAtAnyOtherLayout) {
  const TestParameters parameters(/*mixed=*/true);
  const auto unbroken = Train(parameters, {1, false}, nullptr, 1, 4);
  for (const Layout& before : {Layout{1, false}, {2, true}, {3, true}, {2, false}}) {
    const auto half = Train(parameters, before, nullptr, 1, 2);
    for (const Layout& after : {Layout{1, true}, {2, true}, {4, true}, {3, false}}) {
      const auto whole = Train(parameters, after, half.get(), 3, 4);
      EXPECT_TRUE(*whole == *unbroken) << before.ranks << " to " << after.ranks << " ranks";
    }
  }
}

TEST(DistributedOptimizerState, LoadingIsTheInverseOfSaving) {
  const TestParameters parameters(/*mixed=*/true);
  const auto saved = Train(parameters, {2, true}, nullptr, 1, 2);
  EXPECT_TRUE(*Train(parameters, {3, true}, saved.get(), 1, 0) == *saved);
}

TEST(DistributedOptimizerState, HoldsMomentsAndTheMastersOf16BitParameters) {
  const TestParameters parameters(/*mixed=*/true);
  EXPECT_EQ(
      Train(parameters, {2, true}, nullptr, 1, 1)->names(),
      (std::vector<std::string>{
          "bias", "cut", "first", "last", "optimizer.exp_avg.bias", "optimizer.exp_avg.cut",
          "optimizer.exp_avg.first", "optimizer.exp_avg.last", "optimizer.exp_avg.optional",
          "optimizer.exp_avg_sq.bias", "optimizer.exp_avg_sq.cut", "optimizer.exp_avg_sq.first",
          "optimizer.exp_avg_sq.last", "optimizer.exp_avg_sq.optional", "optimizer.master.cut",
          "optimizer.master.last", "optimizer.step", "optional"}));
}

TEST(DistributedOptimizerState, ErrorsEndSaveAndLoad) {
  const TestParameters parameters;
  const absl::Status status = RankJob(1).Run([&](const RankContext& context) {
    OptimizerRank rank(parameters, context, {});
    const absl::Status full = absl::ResourceExhaustedError("disk full");
    int calls = 0;
    const auto fail = [&](const StatePiece&) { return ++calls == 2 ? full : absl::OkStatus(); };
    EXPECT_EQ(rank.optimizer().Save(fail), full);
    EXPECT_EQ(calls, 2);
    calls = 0;
    EXPECT_EQ(rank.optimizer().Load(fail), full);
    EXPECT_EQ(calls, 2);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

// Two stages, each one data-parallel rank, that hold copies of one embedding.
class Stage {
 public:
  Stage(const RankContext& context, const ParameterRegistry& registry)
      : self_(context.factory.Create("self", {context.rank})),
        plan_(registry.parameters(), {}),
        buffer_(plan_, {}, context.op),
        reducer_(buffer_, {0, 0}, 1, *self_, {}, NoClock),
        gate_(buffer_, *self_, {}, NoClock),
        optimizer_(context.op, ShardWriter(buffer_, 0), reducer_, gate_,
                   {&context.group, &context.group,
                    [](const Parameter& p) { return p.sharing() != Sharing::kCopy; }},
                   {}) {}

  // One step in which every gradient is `gradient`.
  DistributedOptimizer::StepResult Step(float gradient, const OpContext& op) {
    reducer_.BeginStep(1);
    reducer_.Announce(0, plan_.parameters());
    for (const Parameter* parameter : plan_.parameters()) {
      const Tensor grad = reducer_.Slot(*parameter).grad;
      std::fill_n(grad.mutable_data<float>(), grad.numel(), gradient);
      reducer_.Contributed(*parameter, op.stream->Record());
    }
    return *optimizer_.Step(0.5);
  }
  float First(const Parameter& parameter, const OpContext& op) {
    return gate_.Read(parameter, *op.stream, "test").tensor().data<float>()[0];
  }

 private:
  const std::unique_ptr<comm::ProcessGroup> self_;
  const BucketPlan plan_;
  BucketBuffer buffer_;
  GradReducer reducer_;
  ParamGate gate_;
  DistributedOptimizer optimizer_;
};

TEST(DistributedOptimizerState, CopiesOnOtherStagesTakeTheSumAndAreCountedOnce) {
  std::vector<ParameterRegistry> registries(2);
  for (int stage : {0, 1}) {
    const Sharing sharing = stage == 0 ? Sharing::kPrimary : Sharing::kCopy;
    registries[stage].Declare(
        {.name = "embedding", .global_shape = {100}, .box = Box::Whole({100}), .sharing = sharing},
        Init::Zeros());
    registries[stage].Declare({.name = "layer", .global_shape = {30}, .box = Box::Whole({30})},
                              Init::Zeros());
  }
  std::vector<float> embedding(2), layer(2);
  const absl::Status status = RankJob(2).Run([&](const RankContext& context) {
    const ParameterRegistry& registry = registries[context.rank];
    Stage stage(context, registry);
    const auto result = stage.Step(context.rank == 0 ? 1.0f : -3.0f, context.op);
    // (1 - 3)^2 a shared element, 1 and 9 for the stages' own.
    EXPECT_EQ(result.grad_norm, std::sqrt(100 * 4.0 + 30 * 1.0 + 30 * 9.0));
    embedding[context.rank] = stage.First(*registry.parameters()[0], context.op);
    layer[context.rank] = stage.First(*registry.parameters()[1], context.op);
    return absl::OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(embedding[0], embedding[1]);
  EXPECT_GT(embedding[0], 0.0f) << "the sum of gradients is negative";
  EXPECT_LT(layer[0], 0.0f);
  EXPECT_GT(layer[1], 0.0f);
}

}  // namespace
}  // namespace forerun
