// SPDX-License-Identifier: Apache-2.0
#include "tests/support/job.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/ops/cast.h"
#include "core/ops/cpu/kernels.h"
#include "data/mock_dataset.h"
#include "models/gpt.h"
#include "parallel/comm/local/run_ranks.h"
#include "trainer/rank_runtime.h"

namespace forerun {
namespace {

// Puts a piece's values where they lie in the whole tensor.
void Scatter(const StatePiece& piece, const std::vector<float>& values, std::vector<float>& whole) {
  const Shape box_strides = piece.box.extent.ContiguousStrides();
  const Shape strides = piece.global.ContiguousStrides();
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t rest = piece.begin + static_cast<int64_t>(i);
    int64_t at = 0;
    for (int dim = 0; dim < piece.global.rank(); ++dim) {
      at += (rest / box_strides[dim] + piece.box.offset[dim]) * strides[dim];
      rest %= box_strides[dim];
    }
    whole[at] = values[i];
  }
}

// What the ranks of a job report, under one lock.
class Collector {
 public:
  explicit Collector(int world) {
    result_.gathers.resize(world);
    result_.reductions.resize(world);
    result_.buckets.resize(world);
  }

  void AddStep(const StepMetrics& metrics) {
    MutexLock lock(&mutex_);
    result_.losses.push_back(metrics.loss);
    result_.grad_norms.push_back(metrics.grad_norm);
  }

  void AddTransfers(int rank, const std::vector<TransferEvent>& gathers,
                    const std::vector<TransferEvent>& reductions) {
    MutexLock lock(&mutex_);
    for (const TransferEvent& event : gathers) result_.gathers[rank].push_back(event.bucket);
    for (const TransferEvent& event : reductions) result_.reductions[rank].push_back(event.bucket);
  }

  absl::Status AddRank(const OpContext& context, RankTrainer& trainer) {
    const uint64_t checksum = trainer.ParamChecksum();
    DataParallel& parallel = trainer.data_parallel();
    AddTransfers(trainer.parallel().rank(), parallel.gate().log().TakeAllEvents(),
                 parallel.reducer().log().TakeAllEvents());
    FR_RETURN_IF_ERROR(trainer.state()[0]->Save([&](const StatePiece& piece) {
      const Tensor values = Cast(context, piece.values, DType::kF32);
      MutexLock lock(&mutex_);
      std::vector<float>& whole = result_.weights[piece.name];
      whole.resize(piece.global.numel());
      Scatter(piece, {values.data<float>(), values.data<float>() + values.numel()}, whole);
      return absl::OkStatus();
    }));
    MutexLock lock(&mutex_);
    const int rank = trainer.parallel().rank();
    result_.checksum = checksum;
    result_.buckets[rank] = static_cast<int>(trainer.data_parallel().plan().buckets().size());
    if (rank == 0) {
      for (const TransferRecord& record : trainer.data_parallel().gate().log().records()) {
        result_.exposed_gathers_of_rank0 += record.waits;
      }
    }
    return absl::OkStatus();
  }

  JobResult Take() {
    MutexLock lock(&mutex_);
    return std::move(result_);
  }

 private:
  Mutex mutex_;
  JobResult result_ ABSL_GUARDED_BY(mutex_);
};

absl::Status RunRank(const JobSpec& spec, comm::GroupFactory& factory, Collector& collector) {
  FR_ASSIGN_OR_RETURN(const Grid grid, Grid::Create(factory.world_size(), spec.tp, spec.pp));
  const CpuRuntime runtime(spec.kernels != nullptr ? *spec.kernels : cpu::Kernels());
  FR_ASSIGN_OR_RETURN(
      const std::unique_ptr<RankTrainer> trainer,
      RankTrainer::Create(runtime.ops, factory, grid, ChunkFactoryOf(spec), spec.options));
  const MockDataset mock(1 << 20, spec.options.seq_length, spec.config.vocab_size,
                         spec.options.seed);
  const Dataset& dataset = spec.dataset != nullptr ? *spec.dataset : mock;
  for (int64_t i = 1; i <= spec.iterations; ++i) {
    if (spec.inspect) FR_RETURN_IF_ERROR(spec.inspect(*trainer, i - 1));
    FR_ASSIGN_OR_RETURN(
        const StepMetrics metrics,
        trainer->TrainStep(i, spec.lr, dataset, (i - 1) * spec.options.global_batch_size));
    if (factory.rank() == 0) collector.AddStep(metrics);
    DataParallel& parallel = trainer->data_parallel();
    collector.AddTransfers(factory.rank(), parallel.gate().log().TakeEvents(),
                           parallel.reducer().log().TakeEvents());
  }
  if (spec.inspect) FR_RETURN_IF_ERROR(spec.inspect(*trainer, spec.iterations));
  return collector.AddRank(runtime.ops, *trainer);
}

bool SameBits(double a, double b) { return a == b; }

double Relative(double a, double b) { return std::abs(a - b) / std::max(1e-30, std::abs(b)); }

// Whether an element is a key's bias: in each group of a fused projection, after the queries.
bool IsKeyBias(const std::string& name, size_t index, const GptConfig& config) {
  if (!absl::EndsWith(name, "qkv.bias")) return false;
  const int64_t d = config.head_dim();
  const int64_t head = static_cast<int64_t>(index) / d % (config.queries_per_group() + 2);
  return head == config.queries_per_group();
}

}  // namespace

JobSpec T0() {
  JobSpec spec;
  GptConfig& config = spec.config;
  config.num_layers = 4;
  config.hidden_size = 64;
  config.ffn_hidden_size = 128;
  config.num_attention_heads = 4;
  config.num_query_groups = 4;
  config.seq_length = 32;
  config.max_position_embeddings = 32;
  config.vocab_size = 128;
  config.padded_vocab_size = 128;
  config.tied_embeddings = false;
  spec.options.seq_length = 32;
  spec.options.micro_batch_size = 1;
  spec.options.global_batch_size = 8;
  spec.options.optimizer.adamw = {0.9f, 0.999f, 1e-8f};
  spec.options.optimizer.weight_decay = 0.01;
  spec.options.optimizer.clip_grad = 1.0;
  spec.options.data_parallel.shard_optimizer = false;
  spec.options.data_parallel.overlap_grad_reduce = false;
  spec.options.data_parallel.overlap_param_gather = false;
  return spec;
}

JobSpec T0Overlapped() {
  JobSpec spec = T0();
  spec.options.data_parallel.shard_optimizer = true;
  spec.options.data_parallel.overlap_grad_reduce = true;
  spec.options.data_parallel.overlap_param_gather = true;
  spec.options.data_parallel.bucket_numel = 8192;
  spec.options.data_parallel.poison_stale_params = true;
  return spec;
}

ChunkFactory ChunkFactoryOf(const JobSpec& spec) {
  if (spec.make_chunk) return spec.make_chunk;
  return [&spec](const ParallelContext& parallel) -> absl::StatusOr<std::unique_ptr<ModelChunk>> {
    return GptChunk::Create(spec.config, {parallel.at().pp, parallel.grid().pp_size()},
                            parallel.tensor(), spec.order, spec.recompute);
  };
}

absl::StatusOr<JobResult> RunJob(const JobSpec& spec) {
  const int world = spec.tp * spec.pp * spec.dp;
  Collector collector(world);
  comm::RunRanksOptions options;
  options.hub.deadline = std::chrono::minutes(4);
  FR_RETURN_IF_ERROR(comm::RunRanks(world, options, [&](comm::GroupFactory& factory) {
    return RunRank(spec, factory, collector);
  }));
  return collector.Take();
}

std::string BitDifference(const JobResult& a, const JobResult& b) {
  for (size_t i = 0; i < a.losses.size(); ++i) {
    if (!SameBits(a.losses[i], b.losses[i])) {
      return absl::StrCat("loss of iteration ", i + 1, ": ", a.losses[i], " and ", b.losses[i]);
    }
    if (!SameBits(a.grad_norms[i], b.grad_norms[i])) {
      return absl::StrCat("gradient norm of iteration ", i + 1, ": ", a.grad_norms[i], " and ",
                          b.grad_norms[i]);
    }
  }
  for (const auto& [name, values] : a.weights) {
    const auto other = b.weights.find(name);
    if (other == b.weights.end() || other->second != values)
      return absl::StrCat("weights of ", name);
  }
  return a.losses.size() == b.losses.size() && a.weights.size() == b.weights.size()
             ? ""
             : "numbers of losses or weights";
}

std::string BoundDifference(const JobResult& a, const JobResult& b, const GptConfig& config) {
  for (size_t i = 0; i < b.losses.size(); ++i) {
    if (!(Relative(a.losses[i], b.losses[i]) <= 1e-5)) {
      return absl::StrCat("loss of iteration ", i + 1, ": ", a.losses[i], " and ", b.losses[i]);
    }
    if (!(Relative(a.grad_norms[i], b.grad_norms[i]) <= 1e-5)) {
      return absl::StrCat("gradient norm of iteration ", i + 1, ": ", a.grad_norms[i], " and ",
                          b.grad_norms[i]);
    }
  }
  double all_difference = 0.0, all_square = 0.0;
  for (const auto& [name, values] : b.weights) {
    const auto other = a.weights.find(name);
    if (other == a.weights.end()) return absl::StrCat("no weights of ", name);
    double difference = 0.0, square = 0.0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (IsKeyBias(name, i, config)) continue;
      const double delta = double{other->second[i]} - values[i];
      difference += delta * delta;
      square += double{values[i]} * values[i];
    }
    if (!(std::sqrt(difference) <= 1e-4 * std::sqrt(square))) {
      return absl::StrCat("weights of ", name, " by ", std::sqrt(difference / square));
    }
    all_difference += difference;
    all_square += square;
  }
  if (!(std::sqrt(all_difference) <= 1e-5 * std::sqrt(all_square))) {
    return absl::StrCat("weights of the model by ", std::sqrt(all_difference / all_square));
  }
  return "";
}

std::string OncePerStepDifference(const JobResult& result, int64_t iterations) {
  for (size_t rank = 0; rank < result.gathers.size(); ++rank) {
    const int buckets = result.buckets[rank];
    std::vector<int> gathers, reductions;
    for (int64_t step = 0; step < iterations; ++step) {
      for (int b = 0; b < buckets; ++b) gathers.push_back(b);
      for (int b = buckets - 1; b >= 0; --b) reductions.push_back(b);
    }
    if (result.gathers[rank] != gathers) return absl::StrCat("gathers of rank ", rank);
    if (result.reductions[rank] != reductions) return absl::StrCat("reductions of rank ", rank);
  }
  return "";
}

}  // namespace forerun
