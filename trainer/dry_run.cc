// SPDX-License-Identifier: Apache-2.0
#include "trainer/dry_run.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/ops/meta/kernels.h"
#include "parallel/comm/fake/fake_group.h"
#include "parallel/pipeline/simulate.h"
#include "trainer/model_setup.h"
#include "trainer/rank_runtime.h"
#include "trainer/rank_trainer.h"

namespace forerun {
namespace {

// Hands out tensors without memory.
class MetaReader final : public ParamReader {
 public:
  ParamLease Read(const Parameter& parameter, Stream&, absl::string_view) override {
    return ParamLease(Tensor::Wrap(nullptr, nullptr, parameter.shape(), parameter.dtype(),
                                   Device{DeviceKind::kMeta}, Tensor::Access::kReadOnly));
  }
};

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

// Bytes of the forward passes that are alive at once. Their tapes keep what they hold when they
// have ended; one pass is under way, and under recompute that is where a segment's bytes are.
int64_t ActivationBytes(const ModelChunk& chunk, const Arguments& arguments,
                        int live_microbatches) {
  MetaRuntime meta(meta::Kernels());
  MetaReader reader;
  const int64_t s = arguments.model.seq_length, b = arguments.training.micro_batch_size;
  const Tensor tokens = meta.ops.Empty({s, b}, DType::kI32);
  Tape tape;
  const ForwardContext context{meta.ops, reader, &tape, RandomKey::Root(0), 0, b, true};
  Value input;
  if (!chunk.first()) {
    input = tape.Leaf(meta.ops.Empty(chunk.ActivationShape(s, b), chunk.activation_dtype()));
  }
  const Value output = chunk.Forward(context, input, {tokens, tokens});
  return meta.allocator.peak_bytes() + (live_microbatches - 1) * meta.allocator.bytes_in_use();
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

// One rank of a stage: its chunk, planned as it would be.
absl::StatusOr<std::string> DescribeStage(const Arguments& arguments, const Grid& grid, int stage,
                                          const ChunkFactory& make_chunk, int live_microbatches) {
  comm::FakeGroupFactory factory(grid.RankAt({0, 0, stage}), grid.world_size());
  const ParallelContext parallel(grid, factory);
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<ModelChunk> chunk, make_chunk(parallel));
  FR_ASSIGN_OR_RETURN(
      ForwardOrderGraph graph,
      RecordChunkOrder(*chunk, arguments.model.seq_length, arguments.training.micro_batch_size));
  const auto parameters = chunk->registry().parameters();
  std::vector<DataParallel::Chunk> chunks;
  chunks.push_back({parameters, std::move(graph)});
  const BucketPlan plan =
      PlanBuckets(chunks, grid.dp_size(), RankTrainerOptionsOf(arguments).data_parallel);
  const StageMemory memory = MemoryOf(plan, ActivationBytes(*chunk, arguments, live_microbatches));
  int64_t local = 0;
  for (const Parameter* parameter : parameters) local += parameter->numel();
  return absl::StrFormat(
      "  stage %d: %d parameters a rank in %d buckets; memory a rank %s = parameters %s + "
      "gradients %s + optimizer %s + activations %s (%d microbatches)\n%s",
      stage, local, static_cast<int>(plan.buckets().size()), Mebibytes(memory.total()),
      Mebibytes(memory.parameters), Mebibytes(memory.gradients), Mebibytes(memory.optimizer),
      Mebibytes(memory.activations), live_microbatches, DescribePlan(plan));
}

}  // namespace

absl::StatusOr<std::string> DryRun(const Arguments& arguments) {
  FR_ASSIGN_OR_RETURN(const GptConfig config, ConfigOf(arguments));
  FR_ASSIGN_OR_RETURN(const ChunkFactory make_chunk, ChunkFactoryOf(arguments));
  const ParallelArguments& parallel = arguments.parallel;
  FR_ASSIGN_OR_RETURN(const Grid grid,
                      Grid::Create(parallel.world_size, parallel.tensor_model_parallel_size,
                                   parallel.pipeline_model_parallel_size));
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
  for (int stage = 0; stage < grid.pp_size(); ++stage) {
    FR_ASSIGN_OR_RETURN(
        const std::string described,
        DescribeStage(arguments, grid, stage, make_chunk, simulation.peak_activations[stage]));
    absl::StrAppend(&text, described);
  }
  for (const std::string& flag : arguments.without_effect) {
    absl::StrAppend(&text, flag, " is accepted and has no effect here\n");
  }
  absl::StrAppend(&text, "dry run: nothing was trained");
  return text;
}

}  // namespace forerun
