// SPDX-License-Identifier: Apache-2.0
// DeepSpeed 6870, 5662: a module order that alternates makes prefetching thrash. PyTorch 76949,
// 110138: an evaluation before the first step, or twice in a row, is taken for a change of order.
// The kind of fault: an order that was learned from one pass is trusted in the next.
#include "absl/strings/match.h"
#include "data/mock_dataset.h"
#include "gtest/gtest.h"
#include "tests/support/job.h"
#include "tests/support/letter_chunk.h"

namespace forerun {
namespace {

constexpr int64_t kSteps = 8;
constexpr int64_t kPassesAStep = 4;  // of a rank: dp=2, global batch 8

int64_t StepOf(int64_t pass) { return (pass + kPassesAStep - 1) / kPassesAStep; }

// What rank 0 saw.
struct Seen {
  OrderWatch::Differences differences;
  int64_t adoptions = 0;
  std::vector<int> order;
};

JobSpec Job(std::function<std::string(int64_t pass, int rank)> path, ForwardOrderMode mode,
            Seen* seen) {
  LetterModel model;
  model.path = std::move(path);
  JobSpec spec = T0Overlapped();
  spec.options.data_parallel.bucket_numel = 1;  // a bucket a parameter: table, A, B, C
  spec.options.data_parallel.forward_order = mode;
  spec.make_chunk = MakeLetterChunk(model);
  spec.dp = 2;
  spec.iterations = kSteps;
  spec.inspect = [seen](RankTrainer& trainer, int64_t) {
    if (seen != nullptr && trainer.parallel().rank() == 0) {
      const ForwardPasses& passes = trainer.data_parallel().forward_passes();
      *seen = {passes.differences(), passes.adoptions(), trainer.data_parallel().gate().order()};
    }
    return absl::OkStatus();
  };
  return spec;
}

// Runs with everything on; equal to the bit to everything off.
Seen ExpectRight(const std::function<std::string(int64_t, int)>& path, ForwardOrderMode mode) {
  Seen seen;
  const JobSpec overlapped = Job(path, mode, &seen);
  JobSpec plain = Job(path, ForwardOrderMode::kWarn, nullptr);
  plain.options.data_parallel = T0().options.data_parallel;
  const auto result = RunJob(overlapped);
  const auto off = RunJob(plain);
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(off.ok()) << off.status();
  if (result.ok() && off.ok()) {
    EXPECT_EQ(BitDifference(*result, *off), "");
    EXPECT_EQ(result->gathers[0].size(), result->buckets[0] * kSteps);
    EXPECT_EQ(result->gathers[0], result->gathers[1]) << "one issue sequence on all ranks";
    EXPECT_EQ(result->reductions[0], result->reductions[1]);
  }
  return seen;
}

std::string Alternating(int64_t pass, int) { return StepOf(pass) % 2 == 0 ? "ABC" : "CBA"; }

TEST(OrderChanges, AnOrderThatAlternatesStaysRightAndIsCountedAndNamed) {
  const Seen seen = ExpectRight(Alternating, ForwardOrderMode::kWarn);
  EXPECT_EQ(seen.differences.passes, kSteps / 2 * kPassesAStep);
  EXPECT_EQ(seen.differences.first, "a forward pass read C at place 1 where A was to read A");
  EXPECT_EQ(seen.order, (std::vector<int>{0, 1, 2, 3}));
}

TEST(OrderChanges, AnOrderThatAlternatesIsNeverAdopted) {
  EXPECT_EQ(ExpectRight(Alternating, ForwardOrderMode::kAdopt).adoptions, 0);
}

TEST(OrderChanges, ANewOrderIsAdoptedOnceAllRanksHaveSeenItForThreeSteps) {
  const Seen seen = ExpectRight([](int64_t pass, int) { return StepOf(pass) < 2 ? "ABC" : "BCA"; },
                                ForwardOrderMode::kAdopt);
  EXPECT_EQ(seen.adoptions, 1);
  EXPECT_EQ(seen.order, (std::vector<int>{0, 2, 3, 1}));
}

TEST(OrderChanges, AnOrderThatOneRankAloneSeesIsNotAdopted) {
  const Seen seen =
      ExpectRight([](int64_t pass, int rank) { return pass > 0 && rank == 0 ? "CBA" : "ABC"; },
                  ForwardOrderMode::kAdopt);
  EXPECT_EQ(seen.adoptions, 0);
  EXPECT_GT(seen.differences.passes, 0);
}

TEST(OrderChanges, StrictEndsWithAnErrorThatNamesTheFirstDifference) {
  const auto result = RunJob(Job(Alternating, ForwardOrderMode::kStrict, nullptr));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(
      result.status().message(),
      "forward order (--forward-order strict): a forward pass read C at place 1 where A was to "
      "read A");
}

TEST(OrderChanges, EvaluationIsNoChangeOfOrderAndChangesNoLoss) {
  JobSpec spec = Job([](int64_t, int) { return "ABC"; }, ForwardOrderMode::kStrict, nullptr);
  const auto expected = RunJob(spec);
  spec.inspect = [](RankTrainer& trainer, int64_t done) -> absl::Status {
    const MockDataset dataset(1 << 20, 32, LetterChunk::kVocabulary, 7);
    if (done > 0 && done != 4) return absl::OkStatus();
    for (int twice = 0; twice < 2; ++twice) {
      const absl::StatusOr<double> loss = trainer.Evaluate(dataset, 1);
      if (!loss.ok()) return loss.status();
    }
    return absl::OkStatus();
  };
  const auto result = RunJob(spec);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(BitDifference(*result, *expected), "");
  EXPECT_EQ(OncePerStepDifference(*result, kSteps), "");
}

}  // namespace
}  // namespace forerun
