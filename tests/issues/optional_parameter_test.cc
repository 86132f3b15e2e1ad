// SPDX-License-Identifier: Apache-2.0
// Measured on megatron-core 0.19.2: a parameter that is used only in odd steps, or only in even
// ones, ends the job. PyTorch 158719: a branch that only rank 0 takes hangs. DeepSpeed 6557, 5828:
// a last bucket that one step does not read stays in flight. The kind of fault: the number of uses
// of a step is taken from another step, or from another rank.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "core/autograd/parameter.h"
#include "gtest/gtest.h"
#include "tests/support/job.h"
#include "tests/support/letter_chunk.h"

namespace forerun {
namespace {

constexpr int64_t kSteps = 12;
constexpr int64_t kGlobalBatch = 8;

// Layers A, B, C and D, of which D may be left out: a pass of step s (from 1; 0 is the recorded
// one) on a rank runs D where `runs` says so.
LetterModel Model(int dp, std::function<bool(int64_t step, int rank)> runs) {
  const int64_t passes_a_step = kGlobalBatch / dp;
  LetterModel model;
  model.registered = "ABCD";
  model.optional = "D";
  model.path = [=](int64_t pass, int rank) {
    const int64_t step = (pass + passes_a_step - 1) / passes_a_step;
    return runs(step, rank) ? "ABCD" : "ABC";
  };
  return model;
}

JobSpec Job(const LetterModel& model, int dp) {
  JobSpec spec = T0Overlapped();
  spec.options.data_parallel.bucket_numel = 1;  // D is alone in the last bucket
  spec.make_chunk = MakeLetterChunk(model);
  spec.dp = dp;
  spec.iterations = kSteps;
  return spec;
}

// dp=2 with everything on = one rank = dp=2 with everything off, the last to the bit.
void ExpectTrains(std::function<bool(int64_t step)> runs) {
  const auto same = [runs](int64_t step, int) { return runs(step); };
  JobSpec plain = Job(Model(2, same), 2);
  plain.options.data_parallel = T0().options.data_parallel;
  JobSpec reference = Job(Model(1, same), 1);
  reference.options.data_parallel = T0().options.data_parallel;
  const auto result = RunJob(Job(Model(2, same), 2));
  const auto off = RunJob(plain);
  const auto one_rank = RunJob(reference);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(off.ok()) << off.status();
  ASSERT_TRUE(one_rank.ok()) << one_rank.status();
  EXPECT_EQ(BitDifference(*result, *off), "");
  EXPECT_EQ(BoundDifference(*result, *one_rank, reference.config), "");
  EXPECT_EQ(OncePerStepDifference(*result, kSteps), "") << "every rank always issues";
}

TEST(OptionalParameter, UsedInOddStepsOnly) {
  ExpectTrains([](int64_t step) { return step % 2 == 1; });
}

TEST(OptionalParameter, UsedInEvenStepsOnly) {
  ExpectTrains([](int64_t step) { return step % 2 == 0; });
}

TEST(OptionalParameter, TheLastBucketIsNotReadInOneStep) {
  ExpectTrains([](int64_t step) { return step != 3; });
}

TEST(OptionalParameter, ABranchThatRankZeroAloneTakesTrainsWithZeroFromTheOthers) {
  const LetterModel model = Model(2, [](int64_t, int rank) { return rank == 0; });
  JobSpec plain = Job(model, 2);
  plain.options.data_parallel = T0().options.data_parallel;
  const auto result = RunJob(Job(model, 2));
  const auto off = RunJob(plain);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(off.ok()) << off.status();
  EXPECT_EQ(BitDifference(*result, *off), "");
}

TEST(OptionalParameter, ABranchOfOneRankThatIsNotDeclaredIsANamedError) {
  LetterModel model = Model(2, [](int64_t, int rank) { return rank == 0; });
  model.optional = "";
  const auto result = RunJob(Job(model, 2));
  ASSERT_FALSE(result.ok());
  EXPECT_TRUE(absl::StrContains(result.status().message(), "D")) << result.status();
  EXPECT_TRUE(absl::StrContains(result.status().message(), "optional")) << result.status();
}

TEST(OptionalParameter, OneThatIsLeftOutInLaterStepsAndNotDeclaredIsANamedError) {
  LetterModel model = Model(2, [](int64_t step, int) { return step < 3; });
  model.optional = "";
  const auto result = RunJob(Job(model, 2));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(),
            "forward order: a forward pass did not read D, which the recorded one does; declare "
            "what a model may leave out as optional");
}

TEST(FrozenParameter, IsInNoBucketHasNoStateAndStaysAsItIs) {
  LetterModel model;
  model.frozen = "B";
  JobSpec spec = Job(model, 2);
  std::vector<std::string> planned;
  spec.inspect = [&](RankTrainer& trainer, int64_t done) -> absl::Status {
    if (trainer.parallel().rank() != 0) return absl::OkStatus();
    if (done == 0) {
      for (const Parameter* parameter : trainer.data_parallel().plan().parameters()) {
        planned.push_back(parameter->name());
      }
    }
    return absl::OkStatus();
  };
  const auto result = RunJob(spec);
  spec.iterations = 0;
  const auto untrained = RunJob(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(untrained.ok()) << untrained.status();
  EXPECT_EQ(result->weights.at("B"), untrained->weights.at("B"));
  EXPECT_NE(result->weights.at("A"), untrained->weights.at("A"));
  EXPECT_EQ(std::count(planned.begin(), planned.end(), "B"), 0);
}

TEST(OptionalParameter, ANumberOfUsesThatChangesFromStepToStepStaysRight) {
  JobSpec plain = Job(LetterModel(), 2);
  LetterModel model;
  model.path = [](int64_t pass, int) { return (pass + 3) / 4 % 2 == 1 ? "ABC" : "ABCB"; };
  plain.make_chunk = MakeLetterChunk(model);
  JobSpec overlapped = plain;
  plain.options.data_parallel = T0().options.data_parallel;
  const auto result = RunJob(overlapped);
  const auto off = RunJob(plain);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(off.ok()) << off.status();
  EXPECT_EQ(BitDifference(*result, *off), "");
  EXPECT_EQ(OncePerStepDifference(*result, kSteps), "");
}

}  // namespace
}  // namespace forerun
