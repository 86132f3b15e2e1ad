// SPDX-License-Identifier: Apache-2.0
// A 3D-parallel trainer put together by hand: start reading here. A GPT learns on eight ranks,
// which are threads of this process: each layer is split over 2 (tensor), the layers over 2
// (pipeline), the batch over 2 (data). //trainer does the same with flags, checkpoints and logs
// around it.
#include <cstdio>
#include <map>

#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/ops/copy.h"
#include "core/ops/cpu/kernels.h"
#include "core/ops/meta/kernels.h"
#include "data/batch.h"
#include "data/mock_dataset.h"
#include "data/sampler.h"
#include "models/gpt.h"
#include "optim/distributed_optimizer.h"
#include "parallel/comm/fake/fake_group.h"
#include "parallel/comm/local/run_ranks.h"
#include "parallel/data_parallel/data_parallel.h"
#include "parallel/pipeline/executor.h"
#include "parallel/topology/parallel_context.h"

namespace {

using namespace forerun;  // NOLINT: a user's code

constexpr int kTensor = 2, kPipeline = 2, kData = 2;
constexpr int64_t kSeq = 16, kMicroBatch = 2, kGlobalBatch = 16, kVocab = 64;
constexpr int kMicrobatches = kGlobalBatch / (kMicroBatch * kData);  // of each data-parallel rank
constexpr int kSteps = 30;
constexpr uint64_t kSeed = 1234;

double Now() { return absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()); }

// The part of the model for one rank's place in the grid: its stage's layers, its share of each.
absl::StatusOr<std::unique_ptr<GptChunk>> MakeChunk(const ParallelContext& parallel) {
  GptConfig config{.num_layers = 4, .hidden_size = 32, .ffn_hidden_size = 128};
  config.num_attention_heads = config.num_query_groups = 4;
  config.seq_length = config.max_position_embeddings = kSeq;
  config.vocab_size = config.padded_vocab_size = kVocab;
  return GptChunk::Create(config, {parallel.at().pp, kPipeline}, parallel.tensor());
}

// In which order does the forward pass read its weights? It is run once on tensors that have shapes
// and no memory, over groups that move nothing. `parameters` are those of the chunk that will
// train.
absl::StatusOr<ForwardOrderGraph> RecordOrder(const ParallelContext& place,
                                              absl::Span<const Parameter* const> parameters) {
  comm::FakeGroupFactory fake(place.rank(), place.grid().world_size());
  const ParallelContext parallel(place.grid(), fake);
  FR_ASSIGN_OR_RETURN(const auto chunk, MakeChunk(parallel));
  InlineStream stream(Device{DeviceKind::kMeta});
  MetaAllocator allocator;
  const OpContext meta{&stream, &allocator, &meta::Kernels()};
  const Tensor tokens = meta.Empty({kSeq, kMicroBatch}, DType::kI32);
  const Tensor hidden = meta.Empty(chunk->ActivationShape(kSeq, kMicroBatch), DType::kF32);
  FR_ASSIGN_OR_RETURN(
      const ForwardOrderGraph graph,
      RecordForwardOrder(chunk->registry().parameters(), [&](ParamReader& reader, Tape& tape) {
        const Value input = chunk->first() ? Value{} : tape.Leaf(hidden);
        chunk->Forward({meta, reader, &tape}, input, {tokens, tokens});
      }));
  return graph.ReboundTo(parameters);
}

// One training step as the pipeline sees it: what a stage computes for microbatch m, forward and
// back. The tape of a forward pass is kept until its backward pass.
struct Step final : pipeline::StageModel {
  struct Pass {
    Tape tape;
    Value input, output;
  };
  const OpContext& context;
  const GptChunk& model;
  DataParallel& dp;
  const Dataset& data;
  MicrobatchPlace place;
  std::map<int, Pass> passes = {};
  double loss = 0.0;  // mean over this rank's microbatches; on the last stage

  Step(const OpContext& op, const GptChunk& chunk, DataParallel& parallel, const Dataset& dataset,
       const MicrobatchPlace& first)
      : context(op), model(chunk), dp(parallel), data(dataset), place(first) {}

  pipeline::ActivationSpec Activation(int, int) const override {
    return {model.ActivationShape(kSeq, kMicroBatch), DType::kF32};
  }
  Tensor Forward(int m, int, const Tensor& input) override {
    place.microbatch = m;
    const TokenBatch batch = MakeTokenBatch(data, MicrobatchSamples(place)).value();
    auto& [tape, x, y] = passes[m];
    if (!model.first()) x = tape.Leaf(input);
    // Weights come through the gate: it waits until the last step's result has been gathered.
    y = model.Forward({context, dp.gate(), &tape}, x, {batch.tokens, batch.targets});
    dp.reducer().Announce(/*chunk=*/0, tape.contributions());
    if (model.last()) loss += *y.tensor.data<float>() / kMicrobatches;
    return y.tensor;
  }
  Tensor Backward(int m, int chunk, const Tensor& grad_output) override {
    const Tensor grad_input = BackwardInput(m, chunk, grad_output);
    BackwardWeight(m, chunk);
    return grad_input;
  }
  Tensor BackwardInput(int m, int, const Tensor& grad_output) override {
    const Tensor seed = context.Empty({1}, DType::kF32);
    Fill(context, 1.0f / (kMicrobatches * kData), seed);  // the step's loss is a mean
    auto& [tape, x, y] = passes[m];
    tape.BackwardInput(context, y, model.last() ? seed : grad_output);
    return model.first() ? Tensor() : tape.LeafGradient(x);
  }
  void BackwardWeight(int m, int) override {
    // A bucket whose last gradient arrives is reduced at once, under what is still to compute.
    passes[m].tape.BackwardWeight(context, dp.reducer());
    passes.erase(m);
  }
};

// What every rank runs.
absl::Status Train(comm::GroupFactory& factory) {
  InlineStream stream(Device{});
  CpuAllocator allocator;
  const OpContext context{&stream, &allocator, &cpu::Kernels()};

  // 1. Where this rank stands, whom it talks to along each axis, and its part of the model.
  FR_ASSIGN_OR_RETURN(const Grid grid, Grid::Create(factory.world_size(), kTensor, kPipeline));
  const ParallelContext parallel(grid, factory);
  FR_ASSIGN_OR_RETURN(const auto chunk, MakeChunk(parallel));
  const auto parameters = chunk->registry().parameters();

  // 2. Buckets of parameters in forward order, their memory, the gate and the reducer.
  FR_ASSIGN_OR_RETURN(ForwardOrderGraph order, RecordOrder(parallel, parameters));
  std::vector<DataParallel::Chunk> chunks;
  chunks.push_back({parameters, std::move(order)});
  const DataParallelGroups groups{&parallel.grad_reduce(), &parallel.param_gather(),
                                  &parallel.tensor()};
  FR_ASSIGN_OR_RETURN(const auto dp, DataParallel::Create(context, groups, std::move(chunks),
                                                          {.bucket_numel = 16384}, Now));
  for (const Parameter* parameter : parameters) {
    const Tensor value = dp->buffer().Initial(*parameter);
    InitialValue(*parameter, chunk->registry().init(*parameter), kSeed,
                 {value.mutable_data<float>(), static_cast<size_t>(value.numel())});
  }

  // 3. An optimizer that updates this rank's shard of every bucket. `owns`: of the ranks that hold
  // the same parameter one counts it in the global gradient norm.
  OptimizerPlacement placement{&parallel.world(), &parallel.embedding()};
  placement.owns = [&](const Parameter& p) {
    return p.sharing() != Sharing::kCopy && (!p.replicated() || parallel.at().tp == 0);
  };
  DistributedOptimizer optimizer(context, ShardWriter(dp->buffer(), dp->shard()), dp->reducer(),
                                 dp->gate(), placement, {});

  // 4. Steps: all microbatches through the pipeline, then the update. Gathers of the new parameters
  // go on under the next step's forward pass.
  const pipeline::Schedule schedule = pipeline::OneFOneB(kPipeline, kMicrobatches);
  pipeline::Executor executor(context, parallel.pipeline(), Now);
  const MockDataset data(1 << 20, kSeq, kVocab, kSeed);
  double first_loss = 0.0;
  for (int i = 1; i <= kSteps; ++i) {
    Step step(context, *chunk, *dp, data,
              {(i - 1) * kGlobalBatch, 0, parallel.at().dp, kData, kMicroBatch});
    dp->reducer().BeginStep(kMicrobatches);
    executor.Run(schedule.stages[parallel.at().pp], /*chunks=*/1, step);
    FR_RETURN_IF_ERROR(optimizer.Step(/*lr=*/3e-3).status());
    if (!chunk->last()) continue;
    if (i == 1) first_loss = step.loss;
    if (i == kSteps && step.loss >= first_loss) return absl::InternalError("the loss did not fall");
    const bool speaks = parallel.at() == Coordinates{.pp = kPipeline - 1};
    if (speaks && i % 10 == 0) std::printf("step %2d  loss %.4f\n", i, step.loss);
  }
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    std::fprintf(stderr, "three_d: there is no argument %s\n", argv[1]);
    return 2;
  }
  const absl::Status status = comm::RunRanks(kTensor * kPipeline * kData, {}, Train);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
