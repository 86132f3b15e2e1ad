// SPDX-License-Identifier: Apache-2.0
#include "trainer/rank_trainer.h"

#include <chrono>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/ops/cast.h"
#include "core/ops/meta/kernels.h"
#include "core/tensor/host_tensor.h"
#include "data/batch.h"
#include "parallel/comm/fake/fake_group.h"
#include "parallel/data_parallel/agreement.h"
#include "parallel/pipeline/simulate.h"
#include "trainer/param_checksum.h"
#include "trainer/rank_runtime.h"

namespace forerun {
namespace {

double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Tensor MetaTokens(const OpContext& meta, int64_t s, int64_t b) {
  return meta.Empty({s, b}, DType::kI32);
}

StepPhases PhasesOf(const pipeline::StageRun& run, double update_seconds) {
  StepPhases phases;
  for (const pipeline::ActionRecord& record : run.actions) {
    const bool forward = record.action.kind == pipeline::ActionKind::kForward;
    (forward ? phases.forward_ms : phases.backward_ms) +=
        (record.end - record.start - record.waited) * 1e3;
  }
  phases.update_ms = update_seconds * 1e3;
  return phases;
}

// What ranks must have been told alike, one line an entry.
std::string SettingsOf(const RankTrainerOptions& options) {
  const OptimizerOptions& optimizer = options.optimizer;
  return absl::StrCat("kernels ", options.kernels, "\nstart ", options.start, "\nseed ",
                      options.seed, "\nsequence length ", options.seq_length, "\nmicro batch ",
                      options.micro_batch_size, "\nglobal batch ", options.global_batch_size,
                      "\nsharded optimizer ", options.data_parallel.shard_optimizer, "\nbeta1 ",
                      optimizer.adamw.beta1, "\nbeta2 ", optimizer.adamw.beta2, "\nepsilon ",
                      optimizer.adamw.epsilon, "\nweight decay ", optimizer.weight_decay,
                      "\nclip grad ", optimizer.clip_grad, "\n");
}

absl::StatusOr<Microbatch> ReadMicrobatch(const Dataset& dataset, const MicrobatchPlace& place) {
  FR_ASSIGN_OR_RETURN(TokenBatch batch, MakeTokenBatch(dataset, MicrobatchSamples(place)));
  return Microbatch{std::move(batch.tokens), std::move(batch.targets)};
}

// One line a stage.
std::string TextOf(const pipeline::Schedule& schedule) {
  std::string text;
  for (size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    absl::StrAppend(&text, "stage ", stage, ":");
    for (const pipeline::Action& action : schedule.stages[stage]) {
      absl::StrAppend(&text, " ", pipeline::ToString(action));
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const pipeline::Schedule>> MakeSchedule(
    const RankTrainerOptions& options, const Grid& grid) {
  const int64_t samples = options.micro_batch_size * grid.dp_size();  // of a microbatch
  const auto microbatches = static_cast<int>(options.global_batch_size / samples);
  FR_ASSIGN_OR_RETURN(
      pipeline::Schedule schedule,
      pipeline::ScheduleByName(options.pipeline_schedule, grid.pp_size(), microbatches));
  FR_RETURN_IF_ERROR(pipeline::Verify(schedule));
  return std::make_shared<const pipeline::Schedule>(std::move(schedule));
}

absl::StatusOr<ForwardOrderGraph> RecordChunkOrder(const ModelChunk& meta_chunk, int64_t seq_length,
                                                   int64_t micro_batch_size) {
  const meta::CountingKernels kernels;
  const MetaRuntime meta(kernels.table());
  const Tensor tokens = MetaTokens(meta.ops, seq_length, micro_batch_size);
  return RecordForwardOrder(
      meta_chunk.registry().parameters(),
      [&](ParamReader& reader, Tape& tape) {
        const ForwardContext context{
            meta.ops,           reader, &tape, RandomKey::Root(0), 0, micro_batch_size,
            /*training=*/true,
            /*recompute=*/false};  // one operator a segment would hide what flows inside it
        Value input;
        if (!meta_chunk.first()) {
          input = tape.Leaf(meta.ops.Empty(meta_chunk.ActivationShape(seq_length, micro_batch_size),
                                           meta_chunk.activation_dtype()));
        }
        meta_chunk.Forward(context, input, {tokens, tokens});
      },
      &kernels.work());
}

absl::StatusOr<std::unique_ptr<RankTrainer>> RankTrainer::Create(
    const OpContext& context, comm::GroupFactory& factory, const Grid& grid,
    const ChunkFactory& make_chunk, const RankTrainerOptions& options) {
  FR_ASSIGN_OR_RETURN(std::unique_ptr<RankTrainer> trainer,
                      CreateWithoutValues(context, factory, grid, make_chunk, options));
  trainer->WriteInitialValues();
  return trainer;
}

absl::StatusOr<std::unique_ptr<RankTrainer>> RankTrainer::CreateWithoutValues(
    const OpContext& context, comm::GroupFactory& factory, const Grid& grid,
    const ChunkFactory& make_chunk, const RankTrainerOptions& options) {
  auto trainer = std::unique_ptr<RankTrainer>(new RankTrainer(context, options));
  trainer->clock_ = SteadySeconds;
  FR_RETURN_IF_ERROR(trainer->Build(factory, grid, make_chunk));
  return trainer;
}

absl::Status RankTrainer::Build(comm::GroupFactory& factory, const Grid& grid,
                                const ChunkFactory& make_chunk) {
  comm::FakeGroupFactory fake(factory.rank(), factory.world_size());
  const ParallelContext meta_parallel(grid, fake);
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<ModelChunk> meta_chunk, make_chunk(meta_parallel));
  FR_RETURN_IF_ERROR(meta_chunk->registry().status());
  FR_ASSIGN_OR_RETURN(
      const ForwardOrderGraph graph,
      RecordChunkOrder(*meta_chunk, options_.seq_length, options_.micro_batch_size));

  parallel_ = std::make_unique<ParallelContext>(grid, factory);
  FR_RETURN_IF_ERROR(PlanPipeline());
  FR_ASSIGN_OR_RETURN(chunk_, make_chunk(*parallel_));
  const auto parameters = chunk_->registry().parameters();
  std::vector<DataParallel::Chunk> chunks;
  chunks.push_back({parameters, graph.ReboundTo(parameters)});
  const bool sharded = options_.data_parallel.shard_optimizer;
  const DataParallelGroups groups{&parallel_->grad_reduce(),
                                  sharded ? &parallel_->param_gather() : &parallel_->self(),
                                  &parallel_->tensor()};
  FR_ASSIGN_OR_RETURN(data_parallel_, DataParallel::Create(context_, groups, std::move(chunks),
                                                           options_.data_parallel, clock_));
  parameter_state_ = std::make_unique<ParameterState>(
      std::vector<const Parameter*>(parameters.begin(), parameters.end()), data_parallel_->buffer(),
      data_parallel_->gate(),
      [this](const Parameter& parameter) { return parallel_->at().dp == 0 && Owns(parameter); });
  return absl::OkStatus();
}

// All ranks run one schedule and count the same samples.
absl::Status RankTrainer::PlanPipeline() {
  const Grid& grid = parallel_->grid();
  std::shared_ptr<const pipeline::Schedule> schedule = options_.schedule;
  if (schedule == nullptr) {
    FR_ASSIGN_OR_RETURN(schedule, MakeSchedule(options_, grid));
  }
  microbatches_ = schedule->microbatches;
  FR_RETURN_IF_ERROR(CheckAgreement(context_, parallel_->world(), "settings",
                                    absl::StrCat(SettingsOf(options_), TextOf(*schedule))));
  training_actions_ = schedule->stages[parallel_->at().pp];
  evaluation_actions_ =
      pipeline::ForwardOnly(grid.pp_size(), microbatches_).stages[parallel_->at().pp];
  return absl::OkStatus();
}

void RankTrainer::WriteInitialValues() {
  const ParameterRegistry& registry = chunk_->registry();
  for (const Parameter* parameter : registry.parameters()) {
    const Tensor target = data_parallel_->buffer().Initial(*parameter);
    Tensor values = context_.Empty(parameter->shape(), DType::kF32);
    InitialValue(*parameter, registry.init(*parameter), options_.seed,
                 absl::MakeSpan(values.mutable_data<float>(), values.numel()));
    CastInto(context_, values, target);
  }
}

absl::Status RankTrainer::LoadWeights(absl::FunctionRef<absl::Status(Stateful&)> load) {
  FR_CHECK(optimizer_ == nullptr) << "weights are loaded before the optimizer takes its masters";
  return load(*parameter_state_);
}

absl::Status RankTrainer::LoadOptimizer(absl::FunctionRef<absl::Status(Stateful&)> load) {
  MakeOptimizer();
  return load(*optimizer_);
}

std::vector<Stateful*> RankTrainer::state() {
  MakeOptimizer();
  return {parameter_state_.get(), optimizer_.get()};
}

// Masters are taken from the parameters, so this waits until those are final.
void RankTrainer::MakeOptimizer() {
  if (optimizer_ != nullptr) return;
  OptimizerPlacement placement;
  placement.world = &parallel_->world();
  placement.embedding = &parallel_->embedding();
  const bool sharded = options_.data_parallel.shard_optimizer;
  placement.owns = [this, sharded](const Parameter& parameter) {
    return (sharded || parallel_->at().dp == 0) && Owns(parameter);
  };
  optimizer_ = std::make_unique<DistributedOptimizer>(
      context_, ShardWriter(data_parallel_->buffer(), data_parallel_->shard()),
      data_parallel_->reducer(), data_parallel_->gate(), std::move(placement), options_.optimizer);
}

// Of the ranks of one data-parallel replica, one owns each element of the model.
bool RankTrainer::Owns(const Parameter& parameter) const {
  return parameter.sharing() != Sharing::kCopy &&
         (!parameter.replicated() || parallel_->at().tp == 0);
}

absl::StatusOr<ChunkStage::Step> RankTrainer::StepOf(int64_t iteration, int64_t consumed,
                                                     bool training,
                                                     MicrobatchOf microbatch_of) const {
  ChunkStage::Step step;
  const int dp_size = parallel_->grid().dp_size();
  for (int m = 0; m < microbatches_; ++m) {
    const MicrobatchPlace place{consumed, m, parallel_->at().dp, dp_size,
                                options_.micro_batch_size};
    FR_ASSIGN_OR_RETURN(Microbatch microbatch, microbatch_of(place));
    step.microbatches.push_back(std::move(microbatch));
    step.first_sample.push_back(FirstSample(place) - consumed);
  }
  step.global_batch = options_.global_batch_size;
  step.random = RandomKey::Root(options_.seed).Fold("dropout").Fold(iteration);
  step.loss_scale = 1.0f / static_cast<float>(microbatches_ * dp_size);
  step.training = training;
  return step;
}

absl::StatusOr<StepMetrics> RankTrainer::TrainStep(int64_t iteration, double lr,
                                                   const Dataset& dataset, int64_t consumed) {
  MakeOptimizer();
  const double begin = clock_();
  FR_ASSIGN_OR_RETURN(ChunkStage::Step step, StepOf(iteration, consumed, /*training=*/true,
                                                    [&](const MicrobatchPlace& place) {
                                                      return ReadMicrobatch(dataset, place);
                                                    }));
  FR_ASSIGN_OR_RETURN(StepMetrics metrics,
                      RunStep(iteration, lr, std::move(step), std::mem_fn(&ChunkStage::LossSum)));
  metrics.consumed_samples = consumed + options_.global_batch_size;
  metrics.step_ms = (clock_() - begin) * 1e3;
  metrics.tokens_per_second =
      static_cast<double>(options_.global_batch_size * options_.seq_length) /
      (metrics.step_ms / 1e3);
  return metrics;
}

absl::Status RankTrainer::TraceStep(int64_t iteration) {
  MakeOptimizer();
  const Tensor tokens = MetaTokens(context_, options_.seq_length, options_.micro_batch_size);
  FR_ASSIGN_OR_RETURN(ChunkStage::Step step,
                      StepOf(iteration, /*consumed=*/0, /*training=*/true,
                             [&](const MicrobatchPlace&) -> absl::StatusOr<Microbatch> {
                               return Microbatch{tokens, tokens};
                             }));
  return RunStep(iteration, /*lr=*/0.0, std::move(step), [](const ChunkStage&) { return 0.0; })
      .status();
}

// `loss_sum` looks at the losses of the stage's microbatches.
absl::StatusOr<StepMetrics> RankTrainer::RunStep(
    int64_t iteration, double lr, ChunkStage::Step step,
    absl::FunctionRef<double(const ChunkStage&)> loss_sum) {
  ChunkStage stage(context_, *chunk_, *data_parallel_, std::move(step));
  data_parallel_->reducer().BeginStep(microbatches_);
  pipeline::Executor executor(context_, parallel_->pipeline(), clock_);
  pipeline::StageRun run = executor.Run(training_actions_, /*chunks=*/1, stage);

  StepMetrics metrics;
  metrics.iteration = iteration;
  metrics.lr = lr;
  const double update_begin = clock_();
  FR_RETURN_IF_ERROR(data_parallel_->forward_passes().EndOfStep(context_));
  // The loss comes behind the reductions on the same wire; waited for after them it costs nothing,
  // and their time is booked as theirs.
  const LossSum loss = SumLoss(loss_sum(stage));
  const absl::StatusOr<DistributedOptimizer::StepResult> result = optimizer_->Step(lr);
  metrics.loss = MeanLoss(loss, 1);
  if (!std::isfinite(metrics.loss)) {
    return absl::DataLossError(
        absl::StrCat("the loss is ", metrics.loss, " at iteration ", iteration));
  }
  FR_RETURN_IF_ERROR(result.status());
  metrics.grad_norm = result->grad_norm;
  if (!result->updated) {
    return absl::DataLossError(
        absl::StrCat("the gradient norm is ", metrics.grad_norm, " at iteration ", iteration));
  }
  metrics.exposed = TakeExposed(run);
  const double end = clock_();
  metrics.phases = PhasesOf(run, end - update_begin);
  last_step_ = {iteration, std::move(run.actions), update_begin, end, {}, {}};
  return metrics;
}

absl::StatusOr<double> RankTrainer::Evaluate(const Dataset& dataset, int64_t batches) {
  double loss_sum = 0.0;
  for (int64_t batch = 0; batch < batches; ++batch) {
    FR_ASSIGN_OR_RETURN(ChunkStage::Step step,
                        StepOf(/*iteration=*/0, batch * options_.global_batch_size,
                               /*training=*/false, [&](const MicrobatchPlace& place) {
                                 return ReadMicrobatch(dataset, place);
                               }));
    ChunkStage stage(context_, *chunk_, *data_parallel_, std::move(step));
    pipeline::Executor executor(context_, parallel_->pipeline(), clock_);
    executor.Run(evaluation_actions_, /*chunks=*/1, stage);
    loss_sum += stage.LossSum();
  }
  return MeanLoss(SumLoss(loss_sum), batches);
}

RankTrainer::LossSum RankTrainer::SumLoss(double loss_sum) {
  // The last stage's tensor-parallel ranks all have the loss; one of them counts.
  LossSum sum{HostTensor({1}, DType::kF64), {}};
  *sum.total.mutable_data<double>() = parallel_->at().tp == 0 ? loss_sum : 0.0;
  sum.work = parallel_->world().AllReduce(sum.total, comm::ReduceOp::kSum);
  return sum;
}

double RankTrainer::MeanLoss(const LossSum& sum, int64_t batches) {
  sum.work.Wait(*context_.stream);
  const double microbatches =
      static_cast<double>(batches * microbatches_ * parallel_->grid().dp_size());
  return *sum.total.data<double>() / microbatches;
}

ExposedTime RankTrainer::TakeExposed(const pipeline::StageRun& run) {
  const double gather = data_parallel_->gate().log().waited();
  const double reduce = data_parallel_->reducer().log().waited();
  ExposedTime exposed;
  exposed.param_gather_ms = (gather - std::exchange(gather_waited_, gather)) * 1e3;
  exposed.grad_reduce_ms = (reduce - std::exchange(reduce_waited_, reduce)) * 1e3;
  exposed.pipeline_ms = run.waited * 1e3;
  return exposed;
}

absl::Status RankTrainer::CheckReplicas(int64_t iteration) {
  return CheckAgreement(
      context_, parallel_->grad_reduce(), absl::StrCat("weights after iteration ", iteration),
      ParamHashes(context_, chunk_->registry().parameters(), data_parallel_->gate()));
}

StepTrace RankTrainer::TakeTrace(bool all) {
  StepTrace trace = std::move(last_step_);
  last_step_ = StepTrace{};
  TransferLog& gathers = data_parallel_->gate().log();
  TransferLog& reductions = data_parallel_->reducer().log();
  trace.gathers = all ? gathers.TakeAllEvents() : gathers.TakeEvents();
  trace.reductions = all ? reductions.TakeAllEvents() : reductions.TakeEvents();
  return trace;
}

uint64_t RankTrainer::ParamChecksum() {
  return forerun::ParamChecksum(
      context_, chunk_->registry().parameters(), data_parallel_->gate(),
      [this](const Parameter& parameter) { return parallel_->at().dp == 0 && Owns(parameter); },
      parallel_->world());
}

}  // namespace forerun
