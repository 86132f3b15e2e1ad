// SPDX-License-Identifier: Apache-2.0
#include "optim/distributed_optimizer.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/autograd/testing/test_device.h"
#include "core/ops/cast.h"
#include "core/random/random.h"
#include "gtest/gtest.h"
#include "optim/adamw.h"
#include "optim/grad_clip.h"
#include "optim/testing/optimizer_rank.h"
#include "optim/testing/state_map.h"
#include "parallel/data_parallel/testing/rank_job.h"
#include "parallel/data_parallel/testing/test_parameters.h"

namespace forerun {
namespace {

using Values = std::vector<std::vector<double>>;  // of all parameters
using StepResult = DistributedOptimizer::StepResult;

constexpr double kLr = 0.125;  // what OptimizerRank uses

// Sixteenths in [-1, 1).
float Gradient(int step, const Parameter& parameter, int64_t i) {
  const RandomKey key = RandomKey::Root(11).Fold(parameter.name()).Fold(step);
  return std::floor(UniformAt(key, i) * 32.0f) / 16.0f - 1.0f;
}

// The values of all ranks after each step, and what the steps said (the same on all ranks).
struct Training {
  std::vector<std::vector<Values>> values;  // by rank and step
  std::vector<StepResult> results;
};

Training Train(const TestParameters& parameters, int ranks, int steps,
               const OptimizerRank::Options& options, const GradientSource& gradient = Gradient,
               const comm::LocalHub::Options& hub = {}) {
  Training training;
  training.values.resize(ranks);
  std::vector<std::vector<StepResult>> results(ranks);
  const absl::Status status =
      RankJob(ranks, hub).Run([&](const RankContext& context) -> absl::Status {
        OptimizerRank rank(parameters, context, options);
        for (int step = 1; step <= steps; ++step) {
          const auto result = rank.Step(step, gradient);
          if (!result.ok()) return result.status();
          results[context.rank].push_back(*result);
          training.values[context.rank].push_back(rank.Read());
        }
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  training.results = results[0];
  for (const auto& of_rank : results) {
    for (int s = 0; s < steps; ++s) {
      EXPECT_EQ(of_rank[s].updated, results[0][s].updated);
      EXPECT_EQ(of_rank[s].grad_norm, results[0][s].grad_norm);
    }
  }
  return training;
}

// Replicas equal to each other and to `expected` after every step.
void ExpectSameBits(const Training& training, const Training& expected) {
  for (const auto& of_rank : training.values) EXPECT_EQ(of_rank, expected.values[0]);
  ASSERT_EQ(training.results.size(), expected.results.size());
  for (size_t s = 0; s < expected.results.size(); ++s) {
    EXPECT_EQ(training.results[s].grad_norm, expected.results[s].grad_norm) << "step " << s + 1;
  }
}

class DistributedOptimizerTest : public testing::Test {
 protected:
  static OptimizerRank::Options Options(bool sharded, bool overlap = true) {
    OptimizerRank::Options options;
    options.sharded = sharded;
    options.overlap = overlap;
    return options;
  }
  const TestParameters parameters_{/*mixed=*/true};
};

TEST_F(DistributedOptimizerTest, AnyRanksShardedOrNotGiveTheBitsOfOneRank) {
  const Training expected = Train(parameters_, 1, 4, Options(false));
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (bool sharded : {false, true}) {
      for (bool overlap : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << ranks << " ranks, sharded " << sharded << ", overlap " << overlap);
        ExpectSameBits(Train(parameters_, ranks, 4, Options(sharded, overlap)), expected);
      }
    }
  }
}

// The other rank's gathers need this one, which reads nothing, and its reductions need the other's.
TEST_F(DistributedOptimizerTest, ARankThatReadsNothingHoldsUpNobodyWithoutAWindow) {
  OptimizerRank::Options options = Options(true);
  options.window_bytes = 0;
  const absl::Status status = RankJob(2).Run([&](const RankContext& context) -> absl::Status {
    OptimizerRank rank(parameters_, context, options);
    for (int step = 1; step <= 3; ++step) {
      if (context.rank == 0) rank.Read();
      const auto result = rank.Step(step, Gradient);
      if (!result.ok()) return result.status();
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

// The oracle: AdamW on whole fp32 vectors, rounded for parameters of 16 bits.
TEST_F(DistributedOptimizerTest, OneRankFollowsAdamWOnMastersWithClippingByTheNorm) {
  constexpr int kSteps = 5;
  OptimizerRank::Options options = Options(false);
  options.optimizer.clip_grad = 3.0;
  options.optimizer.weight_decay = 0.25;
  const Training training = Train(parameters_, 1, kSteps, options);
  TestDevice cpu(DeviceKind::kCpu);
  const BucketPlan plan = parameters_.Plan(1);
  BucketBuffer initial(plan, parameters_.frozen(), cpu.op());
  parameters_.Initialise(initial);
  for (size_t p = 0; p < parameters_.order().size(); ++p) {
    const Parameter& parameter = *parameters_.order()[p];
    const std::vector<double> start = ValuesOf(initial.Initial(parameter));
    std::vector<float> master(start.begin(), start.end());
    std::vector<float> m(master.size()), v(master.size()), grad(master.size());
    for (int step = 1; step <= kSteps; ++step) {
      for (size_t i = 0; i < grad.size(); ++i) grad[i] = Gradient(step, parameter, i);
      const double norm = training.results[step - 1].grad_norm;
      EXPECT_GT(norm, 3.0);
      AdamW(options.optimizer.adamw,
            {static_cast<float>(kLr), parameter.weight_decay() ? 0.25f : 0.0f,
             ClipFactor(norm, 3.0), step},
            absl::MakeSpan(master), absl::MakeSpan(m), absl::MakeSpan(v), grad);
      for (size_t i = 0; i < master.size(); ++i) {
        const float stored =
            parameter.dtype() == DType::kF32 ? master[i] : static_cast<float>(BFloat16(master[i]));
        ASSERT_EQ(training.values[0][step - 1][p][i], stored)
            << parameter.name() << " at " << i << " after step " << step;
      }
    }
  }
}

TEST_F(DistributedOptimizerTest, TheNormCountsEveryElementOnce) {
  double squares = 0.0;
  for (const Parameter* parameter : parameters_.order()) {
    for (int64_t i = 0; i < parameter->numel(); ++i) {
      squares += std::pow(Gradient(1, *parameter, i), 2);
    }
  }
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (bool sharded : {false, true}) {
      EXPECT_EQ(Train(parameters_, ranks, 1, Options(sharded)).results[0].grad_norm,
                std::sqrt(squares))
          << ranks << " ranks, sharded " << sharded;
    }
  }
}

TEST_F(DistributedOptimizerTest, AReplicaIsUpdatedAndNotCounted) {
  OptimizerRank::Options options = Options(true);
  options.counts = [](const Parameter& parameter) { return parameter.name() == "bias"; };
  const GradientSource ones = [](int, const Parameter&, int64_t) { return 1.0f; };
  const Training training = Train(parameters_, 2, 2, options, ones);
  EXPECT_EQ(training.results[0].grad_norm, std::sqrt(70.0));
  EXPECT_NE(training.values[0][0][0], training.values[0][1][0]);
}

TEST_F(DistributedOptimizerTest, AGradientThatIsNotFiniteChangesNothing) {
  for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()}) {
    const GradientSource gradient = [bad](int step, const Parameter& parameter, int64_t i) {
      const bool here = step == 2 && parameter.name() == "cut" && i == 1000;
      return here ? bad : Gradient(step, parameter, i);
    };
    for (bool sharded : {false, true}) {
      const absl::Status status = RankJob(3).Run([&](const RankContext& context) -> absl::Status {
        OptimizerRank rank(parameters_, context, Options(sharded));
        EXPECT_TRUE(rank.Step(1, gradient)->updated);
        const Values before = rank.Read();
        StateMap moments, same_moments;
        EXPECT_TRUE(moments.Save(rank.optimizer()).ok());
        const StepResult result = *rank.Step(2, gradient);
        EXPECT_FALSE(result.updated);
        EXPECT_FALSE(std::isfinite(result.grad_norm));
        EXPECT_EQ(rank.gate().version(0), 1);
        EXPECT_EQ(rank.Read(), before);
        EXPECT_TRUE(same_moments.Save(rank.optimizer()).ok());
        EXPECT_EQ(same_moments, moments);
        EXPECT_TRUE(rank.Step(3, gradient)->updated);
        EXPECT_EQ(rank.gate().version(0), 2);
        return absl::OkStatus();
      });
      EXPECT_TRUE(status.ok()) << status;
    }
  }
}

TEST_F(DistributedOptimizerTest, WeightDecayActsWhereItIsAskedForAlone) {
  const TestParameters parameters;  // fp32
  OptimizerRank::Options options = Options(true);
  options.optimizer.weight_decay = 0.5;
  const GradientSource zero = [](int, const Parameter&, int64_t) { return 0.0f; };
  const Training training = Train(parameters, 2, 2, options, zero);
  const float keep = 1.0f - static_cast<float>(kLr) * 0.5f;
  for (size_t p = 0; p < parameters.order().size(); ++p) {
    const float factor = parameters.order()[p]->weight_decay() ? keep : 1.0f;
    for (size_t i = 0; i < training.values[0][0][p].size(); ++i) {
      const auto once = static_cast<float>(training.values[0][0][p][i]);
      EXPECT_EQ(training.values[0][1][p][i], once * factor) << parameters.order()[p]->name();
    }
  }
}

// Steps that bf16 cannot hold add up in the master: without one nothing would ever move.
TEST_F(DistributedOptimizerTest, SmallStepsOf16BitParametersAddUpInTheirMasters) {
  const absl::Status status = RankJob(2).Run([&](const RankContext& context) -> absl::Status {
    OptimizerRank::Options options = Options(true);
    options.optimizer.weight_decay = 0.0;
    options.optimizer.adamw.epsilon = 1e4f;  // a step is about lr * gradient / 1e4
    OptimizerRank rank(parameters_, context, options);
    const Values before = rank.Read();
    const GradientSource ones = [](int, const Parameter&, int64_t) { return 1.0f; };
    int moved_at = 0;
    for (int step = 1; step <= 300 && moved_at == 0; ++step) {
      EXPECT_TRUE(rank.Step(step, ones)->updated);
      if (rank.Read()[2] != before[2]) moved_at = step;  // "cut"
    }
    EXPECT_GT(moved_at, 1);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(DistributedOptimizerTest, ALiveLeaseEndsTheStepNamingParameterAndHolder) {
  const absl::Status status = RankJob(1).Run([&](const RankContext& context) {
    OptimizerRank rank(parameters_, context, Options(true));
    const ParamLease kept =
        rank.gate().Read(parameters_.named("bias"), *context.op.stream, "layers.1.norm");
    const absl::Status refused = rank.Step(1, Gradient).status();
    EXPECT_EQ(rank.gate().version(0), 0);
    return refused;
  });
  EXPECT_EQ(
      status.message(),
      "parameter bias cannot be updated: layers.1.norm still holds a tensor of it from before "
      "the optimizer step");
}

// Holds up the update of 16-bit buckets, which casts their masters.
class SlowCast final : public CastKernels {
 public:
  explicit SlowCast(const CastKernels& kernels) : kernels_(kernels) {}
  void Cast(const OpContext& context, const Tensor& x, const Tensor& out) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    kernels_.Cast(context, x, out);
  }

 private:
  const CastKernels& kernels_;
};

// Two of three ranks update slowly while the group is quick: a gather that began before its shard
// was published would carry old values, or poison.
TEST_F(DistributedOptimizerTest, ASlowUpdateUnderAFastGatherLeavesReplicasEqual) {
  constexpr int kRanks = 3, kSteps = 3;
  const Training expected = Train(parameters_, 1, kSteps, Options(false));
  TestDevice cpu(DeviceKind::kCpu);
  const SlowCast slow_cast(*cpu.op().kernels->cast);
  KernelTable slow = *cpu.op().kernels;
  slow.cast = &slow_cast;
  for (int64_t inline_bytes : {int64_t{0}, int64_t{1} << 20}) {
    comm::LocalHub::Options hub;
    hub.inline_bytes = inline_bytes;
    std::vector<std::vector<Values>> values(kRanks);
    const absl::Status status =
        RankJob(kRanks, hub).Run([&](const RankContext& context) -> absl::Status {
          OptimizerRank::Options options = Options(true);
          if (context.rank != 1) options.kernels = &slow;
          OptimizerRank rank(parameters_, context, options);
          for (int step = 1; step <= kSteps; ++step) {
            EXPECT_TRUE(rank.Step(step, Gradient)->updated);
            values[context.rank].push_back(rank.Read());
          }
          return absl::OkStatus();
        });
    EXPECT_TRUE(status.ok()) << status;
    for (const auto& of_rank : values) EXPECT_EQ(of_rank, expected.values[0]);
  }
}

}  // namespace
}  // namespace forerun
