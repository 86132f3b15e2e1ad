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

// In the unit that gives up to five digits.
std::string Size(int64_t bytes) {
  double size = static_cast<double>(bytes) / (1 << 20);
  for (const char* unit : {"MiB", "GiB", "TiB"}) {
    if (size < 1e4) return absl::StrFormat("%.1f %s", size, unit);
    size /= 1024;
  }
  return absl::StrFormat("%.1f PiB", size);
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

// A job's schedule, drawn with no more microbatches than show it all.
struct DrawnSchedule {
  int microbatches = 0;  // a step
  int drawn = 0;
  pipeline::Simulation simulation;

  // The idle time at a schedule's ends is the same for any number of microbatches.
  double bubble() const { return simulation.bubble * drawn / microbatches; }
  // A stage that keeps all that are drawn keeps all there are.
  int alive(int stage) const {
    const int most = simulation.peak_activations[stage];
    return most == drawn ? microbatches : most;
  }
  // Of a step, from those of the step that is drawn.
  int64_t ActivationBytes(int stage, int64_t drawn_bytes) const {
    return static_cast<int64_t>(static_cast<double>(drawn_bytes) * alive(stage) /
                                simulation.peak_activations[stage]);
  }
};

absl::StatusOr<DrawnSchedule> Draw(absl::string_view name, int stages, int microbatches) {
  DrawnSchedule result{microbatches, MicrobatchesToRun(microbatches, stages), {}};
  FR_ASSIGN_OR_RETURN(const pipeline::Schedule schedule,
                      pipeline::ScheduleByName(name, stages, result.drawn));
  FR_ASSIGN_OR_RETURN(result.simulation, pipeline::Simulate(schedule, {}));
  return result;
}

std::string DescribeSchedule(const DrawnSchedule& schedule) {
  constexpr size_t kMostDrawn = 16;
  constexpr int kWidth = 100;
  if (schedule.simulation.stages.size() > kMostDrawn) return "";
  std::string text =
      "  from left to right in time: 0, 1, 2, ... the forward pass of a microbatch, a, b, c, ... "
      "its "
      "backward pass, . idle";
  if (schedule.drawn < schedule.microbatches) {
    absl::StrAppend(&text, "; drawn with ", schedule.drawn, " microbatches, of more the middle ",
                    "repeats itself");
  }
  return absl::StrCat(text, "\n", pipeline::Timeline(schedule.simulation, kWidth));
}

// The first rank of a stage.
std::string DescribeStage(const RankTrainer& trainer, int alive, int64_t activation_bytes) {
  const BucketPlan& plan = trainer.data_parallel().plan();
  const StageMemory memory = MemoryOf(plan, activation_bytes);
  int64_t local = 0;
  for (const Parameter* parameter : trainer.chunk().registry().parameters()) {
    local += parameter->numel();
  }
  return absl::StrFormat(
      "  stage %d: %d parameters a rank in %d buckets; memory a rank %s = parameters %s + "
      "gradients %s + optimizer %s + activations %s (%d microbatches)\n%s",
      trainer.parallel().at().pp, local, static_cast<int>(plan.buckets().size()),
      Size(memory.total()), Size(memory.parameters), Size(memory.gradients), Size(memory.optimizer),
      Size(memory.activations), alive, DescribePlan(plan));
}

}  // namespace

absl::StatusOr<std::string> DryRun(const Arguments& arguments) {
  FR_ASSIGN_OR_RETURN(const GptConfig config, ConfigOf(arguments));
  FR_ASSIGN_OR_RETURN(const ChunkFactory make_chunk, ChunkFactoryOf(arguments));
  FR_ASSIGN_OR_RETURN(const Grid grid, GridOf(arguments));
  const std::string& schedule_name = arguments.parallel.pipeline_schedule;
  const auto microbatches = static_cast<int>(arguments.microbatches());
  FR_ASSIGN_OR_RETURN(const DrawnSchedule schedule,
                      Draw(schedule_name, grid.pp_size(), microbatches));
  std::string text = absl::StrFormat(
      "model: %d parameters, vocabulary %d padded to %d\n"
      "layout: %d ranks = tp %d x dp %d x pp %d\n"
      "schedule: %s, %d microbatches of %d samples; bubble %.1f %% of the ideal time if a backward "
      "pass costs two forward passes\n",
      config.ParameterCount(), config.vocab_size, config.padded_vocab_size, grid.world_size(),
      grid.tp_size(), grid.dp_size(), grid.pp_size(), schedule_name, microbatches,
      arguments.training.micro_batch_size, schedule.bubble() * 100.0);
  absl::StrAppend(&text, DescribeSchedule(schedule));
  const auto inspect = [&](const MetaRank& rank) {
    const int stage = rank.trainer().parallel().at().pp;
    absl::StrAppend(&text, DescribeStage(rank.trainer(), schedule.alive(stage),
                                         schedule.ActivationBytes(stage, rank.step_bytes())));
  };
  FR_ASSIGN_OR_RETURN(const JobCheckReport report,
                      CheckJob(grid, make_chunk, RankTrainerOptionsOf(arguments), inspect));
  absl::StrAppend(&text, report.ToString(), "\n");
  for (const std::string& flag : arguments.without_effect) {
    absl::StrAppend(&text, flag, " is accepted and has no effect here\n");
  }
  absl::StrAppend(&text, "dry run: nothing was trained");
  return text;
}

}  // namespace forerun
