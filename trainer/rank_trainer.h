// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/ops/op_context.h"
#include "core/tensor/stateful.h"
#include "core/tensor/tensor.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "models/chunk.h"
#include "optim/distributed_optimizer.h"
#include "parallel/comm/group_factory.h"
#include "parallel/comm/work.h"
#include "parallel/data_parallel/data_parallel.h"
#include "parallel/data_parallel/parameter_state.h"
#include "parallel/pipeline/executor.h"
#include "parallel/pipeline/schedule.h"
#include "parallel/topology/parallel_context.h"
#include "trainer/chunk_stage.h"
#include "trainer/metrics.h"
#include "trainer/step_trace.h"

namespace forerun {

// Builds the part of a model that a rank at this place runs. Called twice, once over groups that
// move nothing: that instance shows the forward order on meta tensors. Both must be built alike.
using ChunkFactory =
    std::function<absl::StatusOr<std::unique_ptr<ModelChunk>>(const ParallelContext&)>;

struct RankTrainerOptions {
  DataParallelOptions data_parallel;
  OptimizerOptions optimizer;
  std::string pipeline_schedule = "1f1b";
  // That schedule, verified, where many ranks are built one after the other; null: each makes it.
  std::shared_ptr<const pipeline::Schedule> schedule;
  std::string kernels;  // in words, what this rank computes with: all ranks alike
  std::string start;    // in words, what it starts from: all ranks alike
  uint64_t seed = 1234;
  int64_t seq_length = 0;
  int64_t micro_batch_size = 1;
  int64_t global_batch_size = 1;  // a multiple of micro batch x data-parallel size
};

// The schedule of every step of such a job, verified.
absl::StatusOr<std::shared_ptr<const pipeline::Schedule>> MakeSchedule(
    const RankTrainerOptions& options, const Grid& grid);

// One rank of a 3D-parallel job: composes the chunk, its data parallelism, the pipeline and the
// optimizer, and runs steps. Every method that trains, evaluates or visits state is a collective
// call: all ranks call it alike. Belongs to the rank's compute thread.
class RankTrainer {
 public:
  // The context and the factory outlive the trainer. Fails in one sentence.
  static absl::StatusOr<std::unique_ptr<RankTrainer>> Create(const OpContext& context,
                                                             comm::GroupFactory& factory,
                                                             const Grid& grid,
                                                             const ChunkFactory& make_chunk,
                                                             const RankTrainerOptions& options);
  // The same without initial values: on meta tensors, which have none.
  static absl::StatusOr<std::unique_ptr<RankTrainer>> CreateWithoutValues(
      const OpContext& context, comm::GroupFactory& factory, const Grid& grid,
      const ChunkFactory& make_chunk, const RankTrainerOptions& options);

  // Between construction and the first step: values come from the seed, and the optimizer has done
  // nothing. These may then replace them, weights first, by what `load` knows (a checkpoint).
  absl::Status LoadWeights(absl::FunctionRef<absl::Status(Stateful&)> load);
  absl::Status LoadOptimizer(absl::FunctionRef<absl::Status(Stateful&)> load);
  // What a checkpoint of this rank holds.
  std::vector<Stateful*> state();

  // Runs one step from the samples after `consumed`; iteration counts from 1. Fails when the loss
  // or the gradient norm is not a finite number. Time fields of the result are this rank's.
  absl::StatusOr<StepMetrics> TrainStep(int64_t iteration, double lr, const Dataset& dataset,
                                        int64_t consumed);
  // A training step that looks at no value and has no samples: on meta tensors, for what it issues.
  absl::Status TraceStep(int64_t iteration);
  // Mean loss over `batches` global batches from the beginning of a dataset.
  absl::StatusOr<double> Evaluate(const Dataset& dataset, int64_t batches);

  uint64_t ParamChecksum();
  // Fails, naming the first parameter that differs, unless all data-parallel replicas hold the same
  // weights.
  absl::Status CheckReplicas(int64_t iteration);
  // The last step, and what the logs have kept since the last call. `all`: messages under way too.
  StepTrace TakeTrace(bool all = false);
  const ParallelContext& parallel() const { return *parallel_; }
  DataParallel& data_parallel() { return *data_parallel_; }
  const DataParallel& data_parallel() const { return *data_parallel_; }
  const ModelChunk& chunk() const { return *chunk_; }
  int microbatches() const { return microbatches_; }
  double Now() const { return clock_(); }

 private:
  // A sum over the world that has been issued.
  struct LossSum {
    Tensor total;
    comm::Work work;
  };

  RankTrainer(const OpContext& context, const RankTrainerOptions& options)
      : context_(context), options_(options) {}
  absl::Status Build(comm::GroupFactory& factory, const Grid& grid, const ChunkFactory& make_chunk);
  absl::Status PlanPipeline();
  void WriteInitialValues();
  void MakeOptimizer();
  bool Owns(const Parameter& parameter) const;
  using MicrobatchOf = absl::FunctionRef<absl::StatusOr<Microbatch>(const MicrobatchPlace&)>;
  absl::StatusOr<ChunkStage::Step> StepOf(int64_t iteration, int64_t consumed, bool training,
                                          MicrobatchOf microbatch_of) const;
  absl::StatusOr<StepMetrics> RunStep(int64_t iteration, double lr, ChunkStage::Step step,
                                      absl::FunctionRef<double(const ChunkStage&)> loss_sum);
  LossSum SumLoss(double loss_sum);
  double MeanLoss(const LossSum& sum, int64_t batches);
  ExposedTime TakeExposed(const pipeline::StageRun& run);

  const OpContext& context_;
  const RankTrainerOptions options_;
  SecondsClock clock_;
  int microbatches_ = 0;
  std::unique_ptr<ParallelContext> parallel_;
  std::unique_ptr<ModelChunk> chunk_;
  std::unique_ptr<DataParallel> data_parallel_;
  std::unique_ptr<DistributedOptimizer> optimizer_;
  std::unique_ptr<ParameterState> parameter_state_;
  pipeline::ActionList training_actions_;
  pipeline::ActionList evaluation_actions_;
  StepTrace last_step_;         // without messages
  double gather_waited_ = 0.0;  // totals at the end of the last step
  double reduce_waited_ = 0.0;
};

// Records the forward order of the chunk that a rank of the grid runs, on meta tensors over groups
// that move nothing. Without other ranks, and at any size.
absl::StatusOr<ForwardOrderGraph> RecordChunkOrder(const ModelChunk& meta_chunk, int64_t seq_length,
                                                   int64_t micro_batch_size);

}  // namespace forerun
