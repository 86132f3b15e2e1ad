// SPDX-License-Identifier: Apache-2.0
// A run that is interrupted and goes on is the run that was not: to the bit in the same layout,
// within the bound of docs/numerics.md in another.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "checkpoint/checkpoint.h"
#include "core/autograd/param_reader.h"
#include "core/autograd/parameter.h"
#include "core/base/status_macros.h"
#include "core/device/device.h"
#include "core/tensor/dtype.h"
#include "core/tensor/stateful.h"
#include "core/tensor/tensor.h"
#include "gtest/gtest.h"
#include "parallel/topology/parallel_context.h"
#include "tests/support/job.h"
#include "trainer/arguments.h"
#include "trainer/metrics.h"
#include "trainer/rank_trainer.h"
#include "trainer/training_loop.h"

namespace forerun {
namespace {

// T0 with dropout, a warm-up and a decay: state that a resumed run must come back to.
constexpr char kT0[] =
    "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --ffn-hidden-size 128 "
    "--seq-length 32 --untie-embeddings-and-output-weights --micro-batch-size 1 "
    "--global-batch-size 12 --lr 1e-3 --lr-decay-iters 10 --lr-warmup-iters 2 --mock-data "
    "--eval-iters 0 --threads-per-rank 1 --param-checksum ";
constexpr char kOverlapped[] =
    "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather "
    "--ddp-bucket-size 8192 --poison-stale-params ";

struct Trained {
  std::vector<int64_t> iterations;
  std::vector<double> losses;
  std::vector<double> grad_norms;
  std::vector<double> lrs;
  uint64_t checksum = 0;
};

Trained Train(absl::string_view flags) {
  const std::vector<std::string> args =
      absl::StrSplit(absl::StrCat(kT0, flags), ' ', absl::SkipEmpty());
  Trained run;
  const absl::StatusOr<Arguments> arguments = ParseArguments(args);
  EXPECT_TRUE(arguments.ok()) << arguments.status();
  if (!arguments.ok()) return run;
  TrainingOutput output;
  output.on_step = [&](const StepMetrics& step) {
    run.iterations.push_back(step.iteration);
    run.losses.push_back(step.loss);
    run.grad_norms.push_back(step.grad_norm);
    run.lrs.push_back(step.lr);
  };
  output.on_checksum = [&](uint64_t checksum) { run.checksum = checksum; };
  const absl::Status status = TrainWithThreads(*arguments, output);
  EXPECT_TRUE(status.ok()) << flags << ": " << status;
  return run;
}

std::string Folder(absl::string_view name) { return absl::StrCat(testing::TempDir(), "/", name); }

// One after the other.
Trained Joined(Trained first, const Trained& second) {
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(first.iterations, second.iterations);
  append(first.losses, second.losses);
  append(first.grad_norms, second.grad_norms);
  append(first.lrs, second.lrs);
  first.checksum = second.checksum;
  return first;
}

void ExpectResumesToTheBit(const std::string& name, const std::string& layout) {
  const Trained whole = Train(absl::StrCat(layout, "--train-iters 10"));
  const std::string folder = Folder(name);
  Trained broken = Train(absl::StrCat(layout, "--train-iters 5 --save ", folder));
  broken = Joined(broken, Train(absl::StrCat(layout, "--train-iters 10 --load ", folder)));
  EXPECT_EQ(broken.iterations, whole.iterations) << name;
  EXPECT_EQ(broken.losses, whole.losses) << name;
  EXPECT_EQ(broken.grad_norms, whole.grad_norms) << name;
  EXPECT_EQ(broken.lrs, whole.lrs) << name;
  EXPECT_EQ(broken.checksum, whole.checksum) << name;
  EXPECT_NE(whole.checksum, 0u);
}

TEST(Resume, IsExactWithFourShards) {
  ExpectResumesToTheBit("dp4", absl::StrCat(kOverlapped, "--world-size 4 "));
}

TEST(Resume, IsExactInThreeDimensions) {
  ExpectResumesToTheBit("3d", absl::StrCat(kOverlapped,
                                           "--world-size 8 --tensor-model-parallel-size 2 "
                                           "--pipeline-model-parallel-size 2 "));
}

TEST(Resume, IsExactInBfloat16) {
  ExpectResumesToTheBit("bf16", absl::StrCat(kOverlapped, "--bf16 --world-size 2 "));
}

TEST(Resume, IsExactWithoutSharding) { ExpectResumesToTheBit("plain", "--world-size 2 "); }

TEST(Resume, SavingOnTheWayChangesNothing) {
  const std::string layout = absl::StrCat(kOverlapped, "--world-size 2 --train-iters 6 ");
  const Trained quiet = Train(layout);
  const Trained saving = Train(absl::StrCat(layout, "--save-interval 2 --save ", Folder("often")));
  EXPECT_EQ(saving.losses, quiet.losses);
  EXPECT_EQ(saving.checksum, quiet.checksum);
}

void ExpectContinuesIn(const std::string& layout, const std::string& folder, const Trained& whole) {
  const Trained rest = Train(absl::StrCat(layout, "--train-iters 10 --load ", folder));
  ASSERT_EQ(rest.losses.size(), 5u) << layout;
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(rest.losses[i], whole.losses[5 + i], 1e-5 * whole.losses[5 + i]) << layout << i;
    EXPECT_NEAR(rest.grad_norms[i], whole.grad_norms[5 + i], 1e-5 * whole.grad_norms[5 + i])
        << layout << i;
  }
}

TEST(Resume, AnyNumberOfShardsLoadsAnyOther) {
  const std::string layout = absl::StrCat(kOverlapped, "--world-size 2 ");
  const Trained whole = Train(absl::StrCat(layout, "--train-iters 10"));
  Train(absl::StrCat(layout, "--train-iters 5 --save ", Folder("dp2")));
  for (const std::string other : {"--world-size 1 ", "--world-size 3 ", "--world-size 4 "}) {
    ExpectContinuesIn(absl::StrCat(kOverlapped, other), Folder("dp2"), whole);
    ExpectContinuesIn(other, Folder("dp2"), whole);  // not sharded
  }
}

// The byte vocabulary is padded to 512 at tensor size 2 and to 384 at 1: both ways it must fit.
TEST(Resume, AnyLayoutLoadsAnyOther) {
  const std::string in_3d = absl::StrCat(kOverlapped,
                                         "--world-size 8 --tensor-model-parallel-size 2 "
                                         "--pipeline-model-parallel-size 2 ");
  const std::string in_2d =
      absl::StrCat(kOverlapped, "--world-size 8 --pipeline-model-parallel-size 4 ");
  const Trained whole = Train(absl::StrCat(in_3d, "--train-iters 10"));
  Train(absl::StrCat(in_3d, "--train-iters 5 --save ", Folder("from3d")));
  Train(absl::StrCat(in_2d, "--train-iters 5 --save ", Folder("from2d")));
  ExpectContinuesIn(in_2d, Folder("from3d"), whole);
  ExpectContinuesIn(in_3d, Folder("from2d"), whole);
}

// All values of a parameter's box, as the checkpoint has them.
absl::StatusOr<std::vector<float>> Saved(Checkpoint& checkpoint, const Parameter& parameter) {
  std::vector<float> values(static_cast<size_t>(parameter.numel()));
  const Tensor target =
      Tensor::Wrap(nullptr, values.data(), {parameter.numel()}, DType::kF32, Device{});
  FR_RETURN_IF_ERROR(checkpoint.LoadPiece(
      {parameter.name(), parameter.global_shape(), parameter.box(), 0, target}));
  return values;
}

// Saves, then compares what the file holds with what this rank's gate lets it read, and with
// `expected`, whole tensors: at tensor and pipeline size 1.
absl::Status SaveAndCompare(RankTrainer& trainer, const std::string& folder, int64_t iteration,
                            const JobResult& expected) {
  InlineStream host(Device{});
  const ParallelContext& parallel = trainer.parallel();
  const SaveOptions options{folder, iteration, parallel.rank(), parallel.grid().world_size(), {}};
  const std::vector<Stateful*> states = trainer.state();
  FR_RETURN_IF_ERROR(SaveCheckpoint(options, states, [&] {
    parallel.world().Barrier().Wait(host);
    return absl::OkStatus();
  }));
  FR_ASSIGN_OR_RETURN(const auto checkpoint, Checkpoint::Open(folder));
  for (const Parameter* parameter : trainer.chunk().registry().parameters()) {
    FR_ASSIGN_OR_RETURN(const std::vector<float> saved, Saved(*checkpoint, *parameter));
    const ParamLease lease = trainer.data_parallel().gate().Read(*parameter, host, "test");
    const bool same_here = std::equal(saved.begin(), saved.end(), lease.tensor().data<float>());
    if (same_here && saved == expected.weights.at(parameter->name())) continue;
    return absl::InternalError(absl::StrCat(parameter->name(), " is not as saved",
                                            same_here ? "" : " on rank ",
                                            same_here ? "" : std::to_string(parallel.rank())));
  }
  return absl::OkStatus();
}

// Megatron-LM 5236: a checkpoint that is saved while gathers are in flight holds, on every rank,
// the weights after the step, not those before it.
TEST(Megatron5236, ASaveRightAfterAStepHoldsTheWeightsAfterIt) {
  JobSpec plain = T0();
  plain.dp = 4;
  plain.iterations = 3;
  const absl::StatusOr<JobResult> expected = RunJob(plain);
  ASSERT_TRUE(expected.ok()) << expected.status();

  JobSpec overlapped = T0Overlapped();
  overlapped.dp = 4;
  overlapped.iterations = 4;
  overlapped.inspect = [&](RankTrainer& trainer, int64_t done) {
    return done == 3 ? SaveAndCompare(trainer, Folder("after3"), 3, *expected) : absl::OkStatus();
  };
  EXPECT_EQ(RunJob(overlapped).status(), absl::OkStatus());
}

}  // namespace
}  // namespace forerun
