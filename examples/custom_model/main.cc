// SPDX-License-Identifier: Apache-2.0
// Trains NextTokenModel on two data-parallel ranks with a sharded optimizer: the library's parts
// put together by hand. Each rank updates half of every bucket, and the buckets are gathered in
// the order in which the model reads them, under the next forward pass.
#include <chrono>
#include <cstdio>

#include "core/base/status_macros.h"
#include "core/ops/copy.h"
#include "core/ops/cpu/kernels.h"
#include "core/ops/meta/kernels.h"
#include "data/batch.h"
#include "data/mock_dataset.h"
#include "examples/custom_model/model.h"
#include "optim/distributed_optimizer.h"
#include "parallel/comm/fake/fake_group.h"
#include "parallel/comm/local/run_ranks.h"
#include "parallel/data_parallel/data_parallel.h"

using namespace forerun;  // NOLINT: an example of use

namespace {
constexpr int kRanks = 2;
constexpr int kSteps = 100;
constexpr int64_t kSequence = 64;

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Which parameters the model reads in which order: found by running it once without memory.
absl::StatusOr<ForwardOrderGraph> RecordOrder(const NextTokenModel& model) {
  std::vector<comm::FakeOp> log;
  const auto self = comm::FakeGroupFactory(0, 1, &log).Create("self", {0});
  InlineStream stream(Device{DeviceKind::kMeta});
  MetaAllocator allocator;
  const OpContext meta{&stream, &allocator, &meta::Kernels()};
  const Tensor tokens = meta.Empty({kSequence, 1}, DType::kI32);
  return RecordForwardOrder(model.registry().parameters(), [&](ParamReader& reader, Tape& tape) {
    model.Loss({.op = meta, .reader = reader, .tape = &tape}, tokens, tokens, *self);
  });
}

// One step of one rank; its loss.
absl::StatusOr<float> Step(const OpContext& op, const NextTokenModel& model, DataParallel& parallel,
                           DistributedOptimizer& optimizer, const TokenBatch& batch,
                           comm::ProcessGroup& self, int step) {
  Tape tape;
  parallel.reducer().BeginStep(/*microbatches=*/1);
  const Value loss = model.Loss({.op = op, .reader = parallel.gate(), .tape = &tape}, batch.tokens,
                                batch.targets, self);
  parallel.reducer().Announce(/*chunk=*/0, tape.contributions());
  const Tensor seed = op.Empty({1}, DType::kF32);
  Fill(op, 1.0f / kRanks, seed);  // reductions sum: together, the mean
  tape.Backward(op, loss, seed, parallel.reducer());
  FR_RETURN_IF_ERROR(optimizer.Step(step, /*lr=*/1e-2).status());
  return *loss.tensor.data<float>();
}

absl::Status Train(comm::GroupFactory& factory) {
  const int rank = factory.rank();
  const auto reduce = factory.Create("reduce", {0, 1});
  const auto gather = factory.Create("gather", {0, 1});
  const auto self = factory.Create("self", {rank});
  InlineStream stream{Device{}};
  CpuAllocator allocator;
  const OpContext op{&stream, &allocator, &cpu::Kernels()};

  const NextTokenModel model;
  FR_ASSIGN_OR_RETURN(ForwardOrderGraph graph, RecordOrder(model));
  if (rank == 0) std::printf("%s\n", graph.ToString().c_str());
  FR_ASSIGN_OR_RETURN(const auto parallel,
                      DataParallel::Create(op, {reduce.get(), gather.get(), self.get()},
                                           {{model.registry().parameters(), graph}}, {}, Seconds));
  for (const Parameter* parameter : model.registry().parameters()) {
    float* values = parallel->buffer().Initial(*parameter).mutable_data<float>();
    InitialValue(*parameter, model.registry().init(*parameter), /*seed=*/1,
                 absl::MakeSpan(values, parameter->numel()));
  }
  DistributedOptimizer optimizer(
      op, ShardWriter(parallel->buffer(), parallel->shard()), parallel->reducer(), parallel->gate(),
      {reduce.get(), self.get(), [](const Parameter&) { return true; }}, {});

  const MockDataset data(/*size=*/1 << 20, kSequence, NextTokenModel::kVocab, /*seed=*/1);
  float first = 0.0f, last = 0.0f;
  for (int step = 1; step <= kSteps; ++step) {
    FR_ASSIGN_OR_RETURN(const TokenBatch batch, MakeTokenBatch(data, {kRanks * step + rank}));
    FR_ASSIGN_OR_RETURN(last, Step(op, model, *parallel, optimizer, batch, *self, step));
    if (step == 1) first = last;
    if (rank == 0 && step % 10 == 0) std::printf("step %3d  loss %.4f\n", step, last);
  }
  return last < first ? absl::OkStatus() : absl::InternalError("the loss did not fall");
}
}  // namespace

int main() {
  const absl::Status status = comm::RunRanks(kRanks, {}, Train);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
