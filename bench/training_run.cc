// SPDX-License-Identifier: Apache-2.0
#include "bench/training_run.h"

#include <algorithm>
#include <memory>

#include "absl/functional/function_ref.h"
#include "core/base/status_macros.h"
#include "core/ops/cpu/kernels.h"
#include "data/mock_dataset.h"
#include "models/gpt.h"
#include "parallel/comm/link/link_group.h"
#include "parallel/comm/link/wall_clock.h"
#include "parallel/comm/local/run_ranks.h"
#include "trainer/rank_runtime.h"

namespace forerun {
namespace {

double Median(const std::vector<StepMetrics>& steps,
              absl::FunctionRef<double(const StepMetrics&)> milliseconds) {
  std::vector<double> values;
  for (const StepMetrics& step : steps) values.push_back(milliseconds(step));
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2] / 1e3;
}

TrainingResult ResultOf(const std::vector<StepMetrics>& steps, const BucketPlan& plan) {
  TrainingResult result;
  result.step = Median(steps, [](const StepMetrics& m) { return m.step_ms; });
  result.forward = Median(steps, [](const StepMetrics& m) { return m.phases.forward_ms; });
  result.backward = Median(steps, [](const StepMetrics& m) { return m.phases.backward_ms; });
  result.update = Median(steps, [](const StepMetrics& m) { return m.phases.update_ms; });
  result.exposed_gather =
      Median(steps, [](const StepMetrics& m) { return m.exposed.param_gather_ms; });
  result.exposed_reduce =
      Median(steps, [](const StepMetrics& m) { return m.exposed.grad_reduce_ms; });
  result.loss = steps.back().loss;
  for (const Bucket& bucket : plan.buckets()) result.bucket_bytes.push_back(bucket.bytes());
  return result;
}

absl::StatusOr<TrainingResult> RunRank(const TrainingSpec& spec, comm::GroupFactory& factory) {
  FR_ASSIGN_OR_RETURN(const Grid grid,
                      Grid::Create(spec.world_size(), spec.tensor_model_parallel_size,
                                   spec.pipeline_model_parallel_size));
  const CpuRuntime runtime(cpu::Kernels());
  const ChunkFactory make_chunk = [&spec](const ParallelContext& parallel) {
    return GptChunk::Create(spec.config, {parallel.at().pp, parallel.grid().pp_size()},
                            parallel.tensor());
  };
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<RankTrainer> trainer,
                      RankTrainer::Create(runtime.ops, factory, grid, make_chunk, spec.options));
  const MockDataset dataset(1 << 20, spec.options.seq_length, spec.config.vocab_size, 1);
  std::vector<StepMetrics> steps;
  for (int i = 0; i < spec.warmup_steps + spec.steps; ++i) {
    FR_ASSIGN_OR_RETURN(
        const StepMetrics metrics,
        trainer->TrainStep(i + 1, /*lr=*/1e-4, dataset, i * spec.options.global_batch_size));
    if (i < spec.warmup_steps) continue;
    steps.push_back(metrics);
    if (factory.rank() == 0 && spec.after_step) spec.after_step(metrics);
  }
  TrainingResult result = ResultOf(steps, trainer->data_parallel().plan());
  result.peak_bytes = runtime.allocator.peak_bytes();
  return result;
}

}  // namespace

absl::StatusOr<TrainingResult> RunTraining(const TrainingSpec& spec) {
  comm::WallClock clock;
  TrainingResult result;
  comm::RunRanksOptions options;
  options.threads_per_rank = spec.threads_per_rank;
  const auto run_rank = [&](comm::GroupFactory& factory) -> absl::Status {
    comm::LinkGroupFactory linked(factory, std::make_shared<comm::Link>(spec.link, clock));
    FR_ASSIGN_OR_RETURN(TrainingResult mine, RunRank(spec, linked));
    if (factory.rank() == 0) result = std::move(mine);
    return absl::OkStatus();
  };
  FR_RETURN_IF_ERROR(comm::RunRanks(spec.world_size(), options, run_rank));
  return result;
}

TrainingSpec Gpt26M() {
  TrainingSpec spec;
  spec.config.num_layers = 8;
  spec.config.hidden_size = 512;
  spec.config.ffn_hidden_size = 2048;
  spec.config.num_attention_heads = 8;
  spec.config.num_query_groups = 8;
  spec.config.seq_length = 256;
  spec.config.max_position_embeddings = 256;
  spec.config.vocab_size = 1024;
  spec.config.padded_vocab_size = 1024;
  spec.options.seq_length = 256;
  spec.options.micro_batch_size = 2;
  spec.options.global_batch_size = 2 * spec.data_parallel_size;
  return spec;
}

}  // namespace forerun
