// SPDX-License-Identifier: Apache-2.0
#include "trainer/job_check.h"

#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/gpt.h"
#include "parallel/topology/parallel_context.h"

namespace forerun {
namespace {

using testing::HasSubstr;

GptConfig SmallConfig() {
  GptConfig config;
  config.num_layers = 4;
  config.hidden_size = 64;
  config.ffn_hidden_size = 128;
  config.num_attention_heads = config.num_query_groups = 4;
  config.seq_length = config.max_position_embeddings = 32;
  config.vocab_size = config.padded_vocab_size = 128;
  return config;
}

RankTrainerOptions SmallOptions(int64_t global_batch_size) {
  RankTrainerOptions options;
  options.seq_length = 32;
  options.global_batch_size = global_batch_size;
  options.data_parallel.bucket_numel = 8192;
  options.data_parallel.poison_stale_params = true;
  return options;
}

// Ranks for which `other` is true build a model that `change` has made another.
template <typename Other, typename Change>
ChunkFactory Factory(Other other, Change change) {
  return [=](const ParallelContext& parallel) -> absl::StatusOr<std::unique_ptr<ModelChunk>> {
    GptConfig config = SmallConfig();
    if (other(parallel.at())) change(config);
    return GptChunk::Create(config, {parallel.at().pp, parallel.grid().pp_size()},
                            parallel.tensor());
  };
}
ChunkFactory OneModel() {
  return Factory([](const Coordinates&) { return false; }, [](GptConfig&) {});
}

std::string ErrorOf(const Grid& grid, const ChunkFactory& make_chunk) {
  const auto report = CheckJob(grid, make_chunk, SmallOptions(8));
  return std::string(report.status().message());
}

TEST(JobCheck, SaysWhatItHasVerified) {
  int stages = 0;
  const auto report =
      CheckJob(*Grid::Create(8, 2, 2), OneModel(), SmallOptions(8), [&](const MetaRank& rank) {
        EXPECT_EQ(rank.trainer().parallel().at(), (Coordinates{0, 0, stages}));
        EXPECT_GT(rank.step_bytes(), 0);
        ++stages;
      });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(stages, 2);
  EXPECT_EQ(report->ranks, 8);
  EXPECT_EQ(report->recorded, 8);
  EXPECT_EQ(report->programs, 2);  // one a stage
  EXPECT_GT(report->operations, 0);
  EXPECT_THAT(report->ToString(), HasSubstr("2 steps of 4 microbatches on 8 ranks"));
}

// Each of the ranks issues as many operations, however many share a program.
TEST(JobCheck, OfManyRanksOneAStageIsRecorded) {
  const auto few = CheckJob(*Grid::Create(64, 2, 2), OneModel(), SmallOptions(64));
  const auto many = CheckJob(*Grid::Create(128, 2, 2), OneModel(), SmallOptions(128));
  ASSERT_TRUE(few.ok() && many.ok()) << few.status() << many.status();
  EXPECT_EQ(few->recorded, 64);
  EXPECT_EQ(few->programs, 2);
  EXPECT_EQ(many->recorded, 2);
  EXPECT_EQ(many->ranks, 128);
  EXPECT_EQ(many->operations, 2 * few->operations);
}

TEST(JobCheck, AStageThatExpectsAnotherActivationIsNamed) {
  const auto wider = [](GptConfig& config) { config.hidden_size = 128; };
  const std::string error = ErrorOf(
      *Grid::Create(2, 1, 2), Factory([](const Coordinates& at) { return at.pp == 1; }, wider));
  EXPECT_THAT(error, HasSubstr("group pp0: rank"));
  EXPECT_THAT(error, HasSubstr("of 4096 fp32"));
  EXPECT_THAT(error, HasSubstr("of 2048 fp32"));
}

TEST(JobCheck, AReplicaWithMoreParametersIsNamed) {
  const auto deeper = [](GptConfig& config) { ++config.num_layers; };
  const std::string error = ErrorOf(
      *Grid::Create(3, 1, 1), Factory([](const Coordinates& at) { return at.dp == 1; }, deeper));
  EXPECT_THAT(error, HasSubstr("group dp-reduce0: collective"));
  EXPECT_THAT(error, HasSubstr("of rank 1 is"));
}

TEST(JobCheck, ATensorParallelRankThatComputesMoreIsNamed) {
  const auto normed = [](GptConfig& config) { config.num_layers = 5; };
  const std::string error = ErrorOf(
      *Grid::Create(2, 2, 1), Factory([](const Coordinates& at) { return at.tp == 1; }, normed));
  EXPECT_THAT(error, HasSubstr("group tp0"));
}

TEST(JobCheck, WhatARanksSetUpWouldRefuseIsRefused) {
  RankTrainerOptions options = SmallOptions(8);
  options.pipeline_schedule = "sideways";
  const auto report = CheckJob(*Grid::Create(2, 1, 2), OneModel(), options);
  EXPECT_THAT(std::string(report.status().message()), HasSubstr("pipeline schedule sideways"));
}

}  // namespace
}  // namespace forerun
