// SPDX-License-Identifier: Apache-2.0
// Megatron-LM 659, 6191, NeMo-RL 949: optimizer state that only the layout which saved it could
// load, or that held padding, or that belonged to another step than the weights. The kind of fault:
// a checkpoint that knows more of a layout, or less of a run, than it should.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/training_run.h"

namespace forerun {
namespace {

std::string Folder(absl::string_view name) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(folder);
  return folder;
}

TrainingRun Train(absl::string_view flags) {
  const absl::StatusOr<TrainingRun> run = TrainWith(flags);
  EXPECT_TRUE(run.ok()) << flags << ": " << run.status();
  return run.ok() ? *run : TrainingRun{};
}

// Degrees, buckets, orders of registration and gather, optimizers whole and sharded, and uneven
// stages.
const std::map<std::string, std::string>& Layouts() {
  static const auto& layouts = *new std::map<std::string, std::string>{
      {"dp1", "--world-size 1 "},
      {"dp2", absl::StrCat(kOverlapFlags, "--world-size 2 --registration-order reversed ")},
      {"dp3", absl::StrCat(kOverlapFlags, "--world-size 3 --ddp-bucket-size 1000000 ")},
      {"dp4", "--world-size 4 "},
      {"tp2dp2", absl::StrCat(kOverlapFlags,
                              "--world-size 4 --tensor-model-parallel-size 2 "
                              "--registration-order shuffled:3 ")},
      {"tp4", absl::StrCat(kOverlapFlags,
                           "--world-size 4 --tensor-model-parallel-size 4 --ddp-bucket-size 1 ")},
      {"pp2dp2", absl::StrCat(kOverlapFlags,
                              "--world-size 4 --pipeline-model-parallel-size 2 "
                              "--decoder-first-pipeline-num-layers 1 ")},
      {"pp4dp2", absl::StrCat(kOverlapFlags,
                              "--world-size 8 --pipeline-model-parallel-size 4 "
                              "--ddp-bucket-size 20000 ")},
      {"3d", absl::StrCat(kOverlapFlags,
                          "--world-size 8 --tensor-model-parallel-size 2 "
                          "--pipeline-model-parallel-size 2 --registration-order mlp-first ")},
  };
  return layouts;
}

// Ten steps without a break, with a checkpoint after five; then each of `targets` goes on from it.
void ExpectLoads(const std::string& model, const std::string& source,
                 const std::vector<std::string>& targets) {
  const std::string start = absl::StrCat(kT0Flags, model);
  const std::string saved = Folder("saved");
  const TrainingRun whole = Train(absl::StrCat(
      start, Layouts().at(source), "--train-iters 10 --save-interval 5 --save ", saved));
  const std::string load = absl::StrCat("--load ", saved, " --ckpt-step 5 ");
  for (const std::string& target : targets) {
    const std::string name = absl::StrCat(source, " to ", target, " ", model);
    const std::string& layout = Layouts().at(target);
    const TrainingRun rest = Train(absl::StrCat(start, layout, load, "--train-iters 10"));
    ASSERT_EQ(rest.losses.size(), 5u) << name;
    EXPECT_EQ(StepDifference(rest, whole, target == source ? 0.0 : 1e-5), "") << name;
    EXPECT_TRUE(target != source || rest.checksum == whole.checksum) << name;
    // What is loaded is, to the bit, what was saved: weights, masters, moments.
    const std::string again = Folder("again");
    Train(absl::StrCat(start, layout, load, "--train-iters 5 --save ", again));
    EXPECT_EQ(TensorDifference(saved, again, 5), "") << name;
  }
}

void ExpectAnyLayoutLoadsAnyOther(const std::string& model) {
  ExpectLoads(model, "dp2", {"dp2", "dp1", "dp3", "dp4"});
  ExpectLoads(model, "3d", {"3d", "pp4dp2", "tp4", "dp3"});
  ExpectLoads(model, "pp4dp2", {"3d", "tp2dp2", "pp2dp2"});
  ExpectLoads(model, "tp4", {"tp4", "pp2dp2", "dp2"});
  ExpectLoads(model, "dp1", {"3d"});
}

TEST(Megatron659, AnyLayoutLoadsAnyOther) {
  ExpectAnyLayoutLoadsAnyOther("--untie-embeddings-and-output-weights ");
}

TEST(Megatron659, AnyLayoutLoadsAnyOtherWithATiedHead) { ExpectAnyLayoutLoadsAnyOther(""); }

TEST(Megatron659, SixteenBitParametersAndTheirMastersToo) {
  ExpectLoads("--bf16 ", "dp2", {"dp2"});
}

// A bucket a parameter: of a norm's, seven ranks of eight own only what fills it up.
TEST(Megatron6191, ARankThatOwnsOnlyPaddingSavesAndLoads) {
  const std::string flags = absl::StrCat(
      kT0Flags, kOverlapFlags, "--world-size 8 --global-batch-size 8 --ddp-bucket-size 1 ");
  const std::string saved = Folder("padding");
  const TrainingRun whole =
      Train(absl::StrCat(flags, "--train-iters 6 --save-interval 3 --save ", saved));
  const TrainingRun rest =
      Train(absl::StrCat(flags, "--train-iters 6 --ckpt-step 3 --load ", saved));
  EXPECT_EQ(rest.losses.size(), 3u);
  EXPECT_EQ(StepDifference(rest, whole, 0.0), "");
  EXPECT_EQ(rest.checksum, whole.checksum);
}

TEST(NeMoRl949, AfterASaveRightAfterAStepTheNextLossIsThatOfTheUnbrokenRun) {
  const std::string flags = absl::StrCat(kT0Flags, kOverlapFlags, "--world-size 4 ");
  const std::string saved = Folder("each_step");
  const TrainingRun whole =
      Train(absl::StrCat(flags, "--train-iters 4 --save-interval 1 --save ", saved));
  for (int step = 1; step < 4; ++step) {
    const TrainingRun next = Train(
        absl::StrCat(flags, "--train-iters ", step + 1, " --ckpt-step ", step, " --load ", saved));
    EXPECT_EQ(next.losses.size(), 1u);
    EXPECT_EQ(StepDifference(next, whole, 0.0), "") << step;
  }
}

}  // namespace
}  // namespace forerun
