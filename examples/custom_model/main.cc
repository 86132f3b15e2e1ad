// SPDX-License-Identifier: Apache-2.0
// Trains MixerChunk with tp=2, pp=2, dp=2: eight ranks as threads of this process.
#include <cstdio>
#include <memory>

#include "core/base/status_macros.h"
#include "core/ops/cpu/kernels.h"
#include "data/mock_dataset.h"
#include "examples/custom_model/model.h"
#include "parallel/comm/local/run_ranks.h"
#include "trainer/rank_runtime.h"
#include "trainer/rank_trainer.h"

namespace {

using namespace mixer;  // NOLINT: a user's code

absl::Status Train(comm::GroupFactory& factory) {
  RankTrainerOptions options;  // everything overlaps by default
  options.data_parallel.bucket_numel = 4096;
  options.seq_length = 32;
  options.global_batch_size = 8;
  FR_ASSIGN_OR_RETURN(const Grid grid, Grid::Create(factory.world_size(), /*tp=*/2, /*pp=*/2));
  const CpuRuntime runtime(cpu::Kernels());
  const auto make_chunk = [](const ParallelContext& parallel) {
    return std::make_unique<MixerChunk>(parallel);
  };
  FR_ASSIGN_OR_RETURN(const auto trainer,
                      RankTrainer::Create(runtime.ops, factory, grid, make_chunk, options));
  const MockDataset data(1 << 20, options.seq_length, MixerChunk::kVocab, options.seed);
  double first = 0.0, last = 0.0;
  for (int step = 1; step <= 40; ++step) {
    FR_ASSIGN_OR_RETURN(
        const StepMetrics metrics,
        trainer->TrainStep(step, /*lr=*/3e-3, data, (step - 1) * options.global_batch_size));
    (step == 1 ? first : last) = metrics.loss;
    if (factory.rank() == 0 && step % 10 == 0) std::printf("step %2d  loss %.4f\n", step, last);
  }
  const ForwardOrderGraph& order = trainer->data_parallel().graph(0);
  if (factory.rank() == 0) std::printf("%s", order.ToString().c_str());
  return last < first ? absl::OkStatus() : absl::InternalError("the loss did not fall");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    std::fprintf(stderr, "custom_model: there is no argument %s\n", argv[1]);
    return 2;
  }
  const absl::Status status = forerun::comm::RunRanks(/*world_size=*/8, {}, Train);
  if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : 1;
}
