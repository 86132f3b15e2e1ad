// SPDX-License-Identifier: Apache-2.0
// A run that is interrupted and goes on is the run that was not, to the bit. In another layout:
// //tests/issues:megatron_659_test.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint.h"
#include "core/autograd/param_reader.h"
#include "core/autograd/parameter.h"
#include "core/base/output_file.h"
#include "core/base/status_macros.h"
#include "core/device/device.h"
#include "core/tensor/dtype.h"
#include "core/tensor/host_tensor.h"
#include "core/tensor/stateful.h"
#include "core/tensor/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "parallel/data_parallel/agreement.h"
#include "parallel/topology/parallel_context.h"
#include "tests/support/job.h"
#include "tests/support/training_run.h"
#include "trainer/rank_trainer.h"

namespace forerun {
namespace {

using testing::HasSubstr;

TrainingRun Train(absl::string_view flags) {
  const absl::StatusOr<TrainingRun> run =
      TrainWith(absl::StrCat(kT0Flags, "--untie-embeddings-and-output-weights ", flags));
  EXPECT_TRUE(run.ok()) << flags << ": " << run.status();
  return run.ok() ? *run : TrainingRun{};
}

std::string Folder(absl::string_view name) { return absl::StrCat(testing::TempDir(), "/", name); }

// One after the other.
TrainingRun Joined(TrainingRun first, const TrainingRun& second) {
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
  const TrainingRun whole = Train(absl::StrCat(layout, "--train-iters 10"));
  const std::string folder = Folder(name);
  TrainingRun broken = Train(absl::StrCat(layout, "--train-iters 5 --save ", folder));
  broken = Joined(broken, Train(absl::StrCat(layout, "--train-iters 10 --load ", folder)));
  EXPECT_EQ(broken.iterations, whole.iterations) << name;
  EXPECT_EQ(broken.losses, whole.losses) << name;
  EXPECT_EQ(broken.grad_norms, whole.grad_norms) << name;
  EXPECT_EQ(broken.lrs, whole.lrs) << name;
  EXPECT_EQ(broken.checksum, whole.checksum) << name;
  EXPECT_NE(whole.checksum, 0u);
}

TEST(Resume, IsExactWithFourShards) {
  ExpectResumesToTheBit("dp4", absl::StrCat(kOverlapFlags, "--world-size 4 "));
}

TEST(Resume, IsExactInThreeDimensions) {
  ExpectResumesToTheBit("3d", absl::StrCat(kOverlapFlags,
                                           "--world-size 8 --tensor-model-parallel-size 2 "
                                           "--pipeline-model-parallel-size 2 "));
}

TEST(Resume, IsExactInBfloat16) {
  ExpectResumesToTheBit("bf16", absl::StrCat(kOverlapFlags, "--bf16 --world-size 2 "));
}

TEST(Resume, IsExactWithoutSharding) { ExpectResumesToTheBit("plain", "--world-size 2 "); }

TEST(Resume, SavingOnTheWayChangesNothing) {
  const std::string layout = absl::StrCat(kOverlapFlags, "--world-size 2 --train-iters 6 ");
  const TrainingRun quiet = Train(layout);
  const TrainingRun saving =
      Train(absl::StrCat(layout, "--save-interval 2 --save ", Folder("often")));
  EXPECT_EQ(saving.losses, quiet.losses);
  EXPECT_EQ(saving.checksum, quiet.checksum);
}

std::string Refusal(absl::string_view flags) {
  const absl::StatusOr<TrainingRun> run =
      TrainWith(absl::StrCat(kT0Flags, "--untie-embeddings-and-output-weights ", flags));
  EXPECT_FALSE(run.ok()) << flags;
  return std::string(run.status().message());
}

// Five steps of ten are saved.
class Resumed : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    whole_ =
        new TrainingRun(Train(absl::StrCat("--train-iters 10 --save-interval 5 --save ", Saved())));
  }
  static std::string Saved() { return Folder("half"); }
  static TrainingRun GoOn(absl::string_view flags) {
    return Train(absl::StrCat("--ckpt-step 5 --load ", Saved(), " ", flags));
  }
  static std::string GoOnRefusal(absl::string_view flags) {
    return Refusal(absl::StrCat("--ckpt-step 5 --load ", Saved(), " ", flags));
  }

  static const TrainingRun* whole_;
};
const TrainingRun* Resumed::whole_ = nullptr;

TEST_F(Resumed, TheScheduleIsThisRunsOrTheCheckpointsAndTheUserSaysWhich) {
  EXPECT_THAT(GoOnRefusal("--train-iters 10 --lr 5e-4"),
              HasSubstr("was trained with --lr 0.001, this run has 5e-04"));
  const TrainingRun same = GoOn(
      "--train-iters 10 --lr 5e-4 --lr-decay-style cosine --min-lr 1e-4 "
      "--use-checkpoint-opt_param-scheduler");
  EXPECT_EQ(StepDifference(same, *whole_, 0.0), "");
  EXPECT_EQ(same.checksum, whole_->checksum);
  const TrainingRun other = GoOn("--train-iters 10 --lr 5e-4 --override_opt_param_scheduler");
  ASSERT_EQ(other.lrs.size(), 5u);
  EXPECT_EQ(other.losses[0], whole_->losses[5]);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(other.lrs[i], whole_->lrs[5 + i] / 2);
  EXPECT_THAT(GoOnRefusal("--train-iters 10 --use-checkpoint-opt_param-scheduler "
                          "--override-opt_param-scheduler"),
              HasSubstr("give one of them"));
}

TEST_F(Resumed, TheSeedIsTheCheckpointsUnlessTheUserSaysOtherwise) {
  const TrainingRun same = GoOn("--train-iters 10 --seed 7");
  EXPECT_EQ(StepDifference(same, *whole_, 0.0), "");
  EXPECT_TRUE(same.Said("the checkpoint's seed 1234 goes on, not --seed 7"));
  EXPECT_NE(GoOn("--train-iters 6 --seed 7 --no-load-rng").losses[0], whole_->losses[5]);
}

TEST_F(Resumed, WithoutItsOptimizerTheMomentsBeginAnew) {
  const std::string saved = Folder("fresh");
  const TrainingRun run = GoOn(absl::StrCat("--train-iters 7 --no-load-optim --save ", saved));
  EXPECT_EQ(run.iterations, (std::vector<int64_t>{6, 7}));
  EXPECT_EQ(run.losses[0], whole_->losses[5]);
  EXPECT_NE(run.losses[1], whole_->losses[6]);
  const auto checkpoint = Checkpoint::Open(saved);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const Tensor steps = HostTensor({1}, DType::kI64);
  ASSERT_EQ((*checkpoint)->LoadPiece({"optimizer.step", {}, Box::Whole({}), 0, steps}),
            absl::OkStatus());
  EXPECT_EQ(*steps.data<int64_t>(), 2);
}

TEST_F(Resumed, FinetuningTakesTheWeightsAndNothingElse) {
  const TrainingRun run = GoOn("--train-iters 3 --finetune --lr 5e-4 --lr-decay-iters 3");
  EXPECT_EQ(run.iterations, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(run.lrs[0], 2.5e-4);                // the first of two steps of warm-up
  EXPECT_LT(run.losses[0], whole_->losses[0]);  // the same samples, a trained model
  const TrainingRun none = GoOn("--train-iters 0 --finetune --lr-warmup-iters 0");
  EXPECT_EQ(none.checksum, GoOn("--train-iters 5").checksum);
  EXPECT_EQ(Refusal("--train-iters 3 --finetune"), "--finetune needs --load");
}

TEST_F(Resumed, TheModelsFlagsCanComeFromTheCheckpoint) {
  const std::string rest = absl::StrCat(
      "--micro-batch-size 1 --global-batch-size 12 --lr 1e-3 --lr-decay-iters 10 "
      "--lr-warmup-iters 2 --mock-data --eval-iters 0 --threads-per-rank 1 --train-iters 10 "
      "--world-size 2 --use-checkpoint-args --ckpt-step 5 --load ",
      Saved());
  const absl::StatusOr<TrainingRun> run = TrainWith(rest);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->losses.size(), 5u);
  EXPECT_EQ(StepDifference(*run, *whole_, 1e-5), "");
  EXPECT_EQ(TrainWith(rest + " --hidden-size 32").status().message(),
            "the checkpoint's model has --hidden-size 64, this run's has 32");
}

// fp32 weights become the masters of 16-bit ones, and masters the fp32 weights.
TEST_F(Resumed, InTheOtherPrecisionEveryFp32ValueIsTaken) {
  const std::string sixteen = Folder("sixteen"), back = Folder("back");
  GoOn(absl::StrCat("--bf16 --train-iters 5 --save ", sixteen));
  Train(absl::StrCat("--train-iters 5 --load ", sixteen, " --save ", back));
  EXPECT_EQ(TensorDifference(Saved(), back, 5), "");
  const TrainingRun rest = GoOn("--bf16 --train-iters 10");
  ASSERT_EQ(rest.losses.size(), 5u);
  EXPECT_EQ(StepDifference(rest, *whole_, 1e-2), "");
}

// The same file names and bytes under two folders.
void ExpectSameFiles(const std::string& a, const std::string& b) {
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(a)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = entry.path();
    const std::string other = absl::StrCat(b, path.substr(a.size()));
    EXPECT_EQ(*ReadFile(path), ReadFile(other).value_or("no file")) << path;
    ++files;
  }
  EXPECT_GT(files, 0);
}

TEST(AsyncSave, WritesTheFilesOfASaveThatStopsTheRunAndChangesNoBit) {
  const std::string layout = absl::StrCat(
      kOverlapFlags, "--world-size 4 --train-iters 6 --save-interval 1 --save-retain-interval 2 ");
  const std::string stops = Folder("stops"), flows = Folder("flows");
  const TrainingRun stopping = Train(absl::StrCat(layout, "--save ", stops));
  const TrainingRun flowing = Train(absl::StrCat(layout, "--async-save --save ", flows));
  EXPECT_EQ(flowing.losses, stopping.losses);
  EXPECT_EQ(flowing.checksum, stopping.checksum);
  for (const int iteration : {1, 2, 3, 4, 5, 6}) {
    const std::string folder = absl::StrCat("/iter_000000", iteration);
    EXPECT_EQ(std::filesystem::exists(flows + folder), iteration % 2 == 0) << iteration;
    EXPECT_TRUE(flowing.Said(absl::StrCat("saved checkpoint of iteration ", iteration, " in")));
  }
  ExpectSameFiles(stops, flows);
  ExpectSameFiles(flows, stops);
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
  FR_RETURN_IF_ERROR(SaveCheckpoint(options, states, [&](const absl::Status& mine) {
    return AgreeOnStatus(parallel.world(), mine);
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
