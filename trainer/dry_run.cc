// SPDX-License-Identifier: Apache-2.0
#include "trainer/dry_run.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "parallel/pipeline/simulate.h"
#include "trainer/job_check.h"
#include "trainer/meta_rank.h"
#include "trainer/model_setup.h"

namespace forerun {
namespace {

// What one rank of a stage holds, in bytes.
struct StageMemory {
  int64_t parameters = 0;
  int64_t gradients = 0;
  int64_t optimizer = 0;
  int64_t activations = 0;  // of the microbatches that are alive at once

  int64_t total() const { return parameters + gradients + optimizer + activations; }
};

std::string Mebibytes(int64_t bytes) {
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20));
}

StageMemory MemoryOf(const BucketPlan& plan, int64_t activation_bytes) {
  StageMemory memory;
  memory.activations = activation_bytes;
  for (const Bucket& bucket : plan.buckets()) {
    const int64_t shard = bucket.numel / plan.shards();
    const int64_t master = bucket.dtype == DType::kF32 ? 0 : 4;
    memory.parameters += bucket.bytes();
    memory.gradients += bucket.numel * SizeOf(DType::kF32);
    memory.optimizer += shard * (8 + master);
  }
  return memory;
}

std::string DescribePlan(const BucketPlan& plan) {
  constexpr size_t kMostShown = 12;
  std::string text;
  for (size_t b = 0; b < plan.buckets().size() && b < kMostShown; ++b) {
    const Bucket& bucket = plan.buckets()[b];
    absl::StrAppendFormat(
        &text, "    bucket %d: %s, %d elements, %d pieces, from %s to %s\n", static_cast<int>(b),
        std::string(NameOf(bucket.dtype)), bucket.numel, static_cast<int>(bucket.pieces.size()),
        bucket.pieces.front().parameter->name(), bucket.pieces.back().parameter->name());
  }
  if (plan.buckets().size() > kMostShown) {
    absl::StrAppend(&text, "    and ", plan.buckets().size() - kMostShown, " more\n");
  }
  return text;
}

// The first rank of a stage.
std::string DescribeStage(const MetaRank& rank, int live_microbatches) {
  const BucketPlan& plan = rank.trainer().data_parallel().plan();
  const StageMemory memory = MemoryOf(plan, rank.step_bytes());
  int64_t local = 0;
  for (const Parameter* parameter : rank.trainer().chunk().registry().parameters()) {
    local += parameter->numel();
  }
  return absl::StrFormat(
      "  stage %d: %d parameters a rank in %d buckets; memory a rank %s = parameters %s + "
      "gradients %s + optimizer %s + activations %s (%d microbatches)\n%s",
      rank.trainer().parallel().at().pp, local, static_cast<int>(plan.buckets().size()),
      Mebibytes(memory.total()), Mebibytes(memory.parameters), Mebibytes(memory.gradients),
      Mebibytes(memory.optimizer), Mebibytes(memory.activations), live_microbatches,
      DescribePlan(plan));
}

}  // namespace

absl::StatusOr<std::string> DryRun(const Arguments& arguments) {
  FR_ASSIGN_OR_RETURN(const GptConfig config, ConfigOf(arguments));
  FR_ASSIGN_OR_RETURN(const ChunkFactory make_chunk, ChunkFactoryOf(arguments));
  const ParallelArguments& parallel = arguments.parallel;
  FR_ASSIGN_OR_RETURN(const Grid grid, GridOf(arguments));
  const auto microbatches = static_cast<int>(arguments.microbatches());
  FR_ASSIGN_OR_RETURN(
      const pipeline::Schedule schedule,
      pipeline::ScheduleByName(parallel.pipeline_schedule, grid.pp_size(), microbatches));
  FR_ASSIGN_OR_RETURN(const pipeline::Simulation simulation, pipeline::Simulate(schedule, {}));

  std::string text = absl::StrFormat(
      "model: %d parameters, vocabulary %d padded to %d\n"
      "layout: %d ranks = tp %d x dp %d x pp %d\n"
      "schedule: %s, %d microbatches of %d samples; bubble %.1f %% of the ideal time if a backward "
      "pass costs two forward passes\n",
      config.ParameterCount(), config.vocab_size, config.padded_vocab_size, grid.world_size(),
      grid.tp_size(), grid.dp_size(), grid.pp_size(), parallel.pipeline_schedule, microbatches,
      arguments.training.micro_batch_size, simulation.bubble * 100.0);
  constexpr int kMostDrawn = 16, kWidth = 100;
  if (grid.pp_size() <= kMostDrawn) absl::StrAppend(&text, pipeline::Timeline(simulation, kWidth));
  FR_ASSIGN_OR_RETURN(
      const JobCheckReport report,
      CheckJob(grid, make_chunk, RankTrainerOptionsOf(arguments), [&](const MetaRank& rank) {
        const int live = simulation.peak_activations[rank.trainer().parallel().at().pp];
        absl::StrAppend(&text, DescribeStage(rank, live));
      }));
  absl::StrAppend(&text, report.ToString(), "\n");
  for (const std::string& flag : arguments.without_effect) {
    absl::StrAppend(&text, flag, " is accepted and has no effect here\n");
  }
  absl::StrAppend(&text, "dry run: nothing was trained");
  return text;
}

}  // namespace forerun
