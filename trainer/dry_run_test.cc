// SPDX-License-Identifier: Apache-2.0
#include "trainer/dry_run.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::HasSubstr;

absl::StatusOr<std::string> PlanOf(absl::string_view flags) {
  const std::vector<std::string> args = absl::StrSplit(flags, ' ', absl::SkipEmpty());
  const absl::StatusOr<Arguments> arguments = ParseArguments(args);
  if (!arguments.ok()) return arguments.status();
  return DryRun(*arguments);
}

constexpr char kSmall[] =
    "--dry-run --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 "
    "--micro-batch-size 1 --train-iters 10 --lr 1e-3 --vocab-size 128 "
    "--untie-embeddings-and-output-weights";

// One rank in fp32 of a model that can be counted by hand.
TEST(DryRun, CountsParametersAndTheirMemory) {
  const absl::StatusOr<std::string> plan = PlanOf(kSmall);
  ASSERT_TRUE(plan.ok()) << plan.status();
  constexpr int64_t h = 64, ffn = 4 * h;
  constexpr int64_t layer = (3 * h * h + 3 * h) + (h * h + h) + (2 * h * ffn + ffn + h) + 4 * h;
  constexpr int64_t count = 2 * 128 * h + 32 * h + 2 * layer + 2 * h;
  EXPECT_THAT(*plan, HasSubstr(absl::StrCat("model: ", count, " parameters")));
  EXPECT_THAT(*plan, HasSubstr(absl::StrCat("stage 0: ", count, " parameters a rank")));
  EXPECT_THAT(*plan, HasSubstr("bubble 0.0 %"));
  EXPECT_THAT(*plan, HasSubstr("dry run: nothing was trained"));
}

// Of the plan's first stage.
double ActivationMebibytes(absl::string_view flags) {
  const auto plan = PlanOf(absl::StrCat(kSmall, " --num-layers 8 ", flags));
  EXPECT_TRUE(plan.ok()) << plan.status();
  const std::pair<std::string, std::string> around =
      absl::StrSplit(*plan, absl::MaxSplits("activations ", 1));
  return std::stod(around.second);
}

TEST(DryRun, RecomputeKeepsFewerActivations) {
  const double all = ActivationMebibytes("");
  const auto recomputed = [](absl::string_view method, int layers) {
    return ActivationMebibytes(absl::StrCat("--recompute-granularity full --recompute-method ",
                                            method, " --recompute-num-layers ", layers));
  };
  EXPECT_LT(recomputed("uniform", 1), 0.5 * all);
  EXPECT_LT(recomputed("block", 8), 0.5 * all);
  EXPECT_LT(recomputed("uniform", 1), recomputed("block", 4));
  EXPECT_LT(recomputed("block", 4), all);
  // One group of all layers saves nothing: it is all there while its backward pass runs.
  EXPECT_GT(recomputed("uniform", 8), 0.9 * all);
}

TEST(DryRun, TheBubbleOf1F1BIsItsFormula) {
  const auto plan =
      PlanOf(absl::StrCat(kSmall, " --pipeline-model-parallel-size 2", " --global-batch-size 4"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(*plan, HasSubstr("bubble 25.0 %"));     // (p - 1) / m
  EXPECT_THAT(*plan, HasSubstr("(2 microbatches)"));  // alive on the first stage: min(m, p - s)
}

TEST(DryRun, FlagsWithoutEffectAreSaid) {
  const auto plan = PlanOf(absl::StrCat(kSmall, " --use-flash-attn"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(*plan, HasSubstr("--use-flash-attn is accepted and has no effect here"));
}

// Over 77 billion parameters on 4096 ranks: nothing is allocated, no rank is started.
TEST(DryRun, PlansAJobOf4096Ranks) {
  const auto plan = PlanOf(
      "--dry-run --num-layers 96 --hidden-size 8192 --num-attention-heads 64 --seq-length 2048 "
      "--micro-batch-size 1 --global-batch-size 1024 --train-iters 10 --lr 1e-4 --bf16 "
      "--vocab-size 50257 --tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 "
      "--world-size 4096 --use-distributed-optimizer --overlap-grad-reduce "
      "--overlap-param-gather");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(*plan, HasSubstr("layout: 4096 ranks = tp 8 x dp 32 x pp 16"));
  EXPECT_THAT(*plan, HasSubstr("stage 15: "));
}

// What a step does over and over is done a few times, ranks of one stage stand for each other, and
// of a parameter of petabytes there are few pieces.
TEST(DryRun, NeitherBatchNorRanksNorWidthHaveALimit) {
  const auto batch = PlanOf(
      absl::StrCat(kSmall, " --pipeline-model-parallel-size 2", " --global-batch-size 20000000"));
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_THAT(*batch, HasSubstr("20000000 microbatches of 1 samples; bubble 0.0 %"));
  EXPECT_THAT(*batch, HasSubstr("drawn with 16 microbatches"));
  EXPECT_THAT(*batch, HasSubstr("(2 microbatches)"));
  const auto ranks = PlanOf(absl::StrCat(kSmall, " --world-size 262144"));
  ASSERT_TRUE(ranks.ok()) << ranks.status();
  EXPECT_THAT(*ranks, HasSubstr("on 262144 ranks"));
  const auto width = PlanOf(absl::StrCat(kSmall, " --hidden-size 10000000"));
  EXPECT_TRUE(width.ok()) << width.status();
}

// All microbatches are kept until the last has gone forward.
TEST(DryRun, ActivationsOfGPipeGrowWithTheBatch) {
  const auto activations = [](int batch) {
    return ActivationMebibytes(absl::StrCat(
        "--pipeline-model-parallel-size 2 --pipeline-schedule gpipe --global-batch-size ", batch));
  };
  EXPECT_NEAR(activations(2000) / activations(20), 100.0, 5.0);
}

TEST(DryRun, WhatCannotBeSplitIsNamed) {
  EXPECT_THAT(
      std::string(
          PlanOf(absl::StrCat(kSmall, " --tensor-model-parallel-size 3")).status().message()),
      HasSubstr("num_attention_heads 4"));
  EXPECT_THAT(
      std::string(
          PlanOf(absl::StrCat(kSmall, " --pipeline-model-parallel-size 3")).status().message()),
      HasSubstr("2 layers cannot be split over 3 pipeline stages"));
}

}  // namespace
}  // namespace forerun
