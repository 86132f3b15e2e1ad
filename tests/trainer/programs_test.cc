// SPDX-License-Identifier: Apache-2.0
// What a dry run says that ranks issue is what they issue: for every layout of the T0 matrix, and
// whatever changes how it communicates, the program of each rank of a real run is the recorded
// program of the same rank on meta tensors.
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ops/cpu/kernels.h"
#include "data/mock_dataset.h"
#include "gtest/gtest.h"
#include "parallel/comm/local/run_ranks.h"
#include "parallel/comm/program/program.h"
#include "parallel/comm/program/recording_group.h"
#include "parallel/data_parallel/cost_model.h"
#include "tests/support/job.h"
#include "trainer/job_check.h"
#include "trainer/meta_rank.h"
#include "trainer/rank_runtime.h"

namespace forerun {
namespace {

constexpr int kSteps = 2;  // the second meets what the first has left under way

// Set-up and training of one rank, and nothing else.
absl::Status TrainRank(const JobSpec& spec, const Grid& grid, comm::GroupFactory& factory) {
  const CpuRuntime runtime(cpu::Kernels());
  FR_ASSIGN_OR_RETURN(
      const std::unique_ptr<RankTrainer> trainer,
      RankTrainer::Create(runtime.ops, factory, grid, ChunkFactoryOf(spec), spec.options));
  const MockDataset dataset(1 << 20, spec.options.seq_length, spec.config.vocab_size, 1);
  for (int64_t step = 1; step <= kSteps; ++step) {
    const int64_t consumed = (step - 1) * spec.options.global_batch_size;
    FR_RETURN_IF_ERROR(trainer->TrainStep(step, spec.lr, dataset, consumed).status());
  }
  return absl::OkStatus();
}

// By rank.
std::vector<comm::Program> RealPrograms(const JobSpec& spec, const Grid& grid) {
  std::vector<comm::Program> programs(grid.world_size());
  comm::RunRanksOptions options;
  options.hub.deadline = std::chrono::minutes(4);
  const absl::Status status =
      comm::RunRanks(grid.world_size(), options, [&](comm::GroupFactory& local) {
        comm::RecordingGroupFactory factory(local);
        FR_RETURN_IF_ERROR(TrainRank(spec, grid, factory));
        programs[local.rank()] = factory.program();
        return absl::OkStatus();
      });
  EXPECT_TRUE(status.ok()) << status;
  return programs;
}

void ExpectRealRunIsTheDryRun(const JobSpec& spec, const std::string& name) {
  const Grid grid = *Grid::Create(spec.tp * spec.pp * spec.dp, spec.tp, spec.pp);
  const absl::StatusOr<JobCheckReport> report = CheckJob(grid, ChunkFactoryOf(spec), spec.options);
  ASSERT_TRUE(report.ok()) << name << ": " << report.status();
  const std::vector<comm::Program> real = RealPrograms(spec, grid);
  int64_t operations = 0;
  for (int rank = 0; rank < grid.world_size(); ++rank) {
    auto recorded = MetaRank::Run(rank, grid, ChunkFactoryOf(spec), spec.options, kSteps);
    ASSERT_TRUE(recorded.ok()) << name << ": " << recorded.status();
    const comm::Program dry = MetaRank::Finish(*std::move(recorded));
    EXPECT_EQ(comm::FirstDifference(real[rank], "the run", dry, "the dry run"), "")
        << name << ", rank " << rank;
    operations += real[rank].operation_count();
  }
  EXPECT_EQ(operations, report->operations) << name;
  EXPECT_EQ(kSteps, report->steps) << name;
}

JobSpec SpecOf(int tp, int pp, int dp) {
  JobSpec spec = T0Overlapped();
  spec.tp = tp;
  spec.pp = pp;
  spec.dp = dp;
  if (dp == 3) spec.options.global_batch_size = 12;
  return spec;
}

TEST(Programs, OfEveryLayoutAndScheduleAreThoseOfTheDryRun) {
  constexpr int kMostRanks = 8;
  for (int tp : {1, 2}) {
    for (int pp : {1, 2, 4}) {
      for (int dp : {1, 2, 3, 4}) {
        if (tp * pp * dp > kMostRanks) continue;
        for (const std::string schedule : {"1f1b", "gpipe"}) {
          if (pp == 1 && schedule == "gpipe") continue;  // the same list of actions
          JobSpec spec = SpecOf(tp, pp, dp);
          spec.options.pipeline_schedule = schedule;
          ExpectRealRunIsTheDryRun(spec,
                                   absl::StrCat("tp=", tp, " pp=", pp, " dp=", dp, " ", schedule));
        }
      }
    }
  }
}

TEST(Programs, OfEveryWayToCommunicateAreThoseOfTheDryRun) {
  std::vector<std::pair<std::string, JobSpec>> variants;
  const auto add = [&](const std::string& name, auto change) {
    JobSpec spec = SpecOf(2, 2, 2);
    change(spec);
    variants.emplace_back(name, spec);
  };
  add("no sharding", [](JobSpec& s) { s.options.data_parallel.shard_optimizer = false; });
  add("no gather overlap",
      [](JobSpec& s) { s.options.data_parallel.overlap_param_gather = false; });
  add("no reduce overlap", [](JobSpec& s) { s.options.data_parallel.overlap_grad_reduce = false; });
  add("small buckets", [](JobSpec& s) { s.options.data_parallel.bucket_numel = 1; });
  add("buckets by the cost model", [](JobSpec& s) {
    s.options.data_parallel.bucket_numel.reset();
    s.options.data_parallel.costs = Costs::Nominal();  // measuring communicates too
  });
  add("bf16", [](JobSpec& s) { s.config.dtype = DType::kBF16; });
  add("recompute", [](JobSpec& s) { s.recompute = {RecomputePlan::Method::kUniform, 1}; });
  add("a tied Llama", [](JobSpec& s) {
    s.config.position_embedding = PositionEmbedding::kRope;
    s.config.norm = NormKind::kRmsNorm;
    s.config.swiglu = true;
    s.config.add_bias_linear = false;
    s.config.num_query_groups = 2;
    s.config.tied_embeddings = true;
  });
  for (const auto& [name, spec] : variants) ExpectRealRunIsTheDryRun(spec, name);
}

}  // namespace
}  // namespace forerun
