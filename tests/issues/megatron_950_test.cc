// SPDX-License-Identifier: Apache-2.0
// Megatron-LM 950: parameters registered A, B, C and run A, C, B; C's gather was never started and
// C was computed with the weights of the step before, silently. The kind of fault: anything that
// takes the order of registration for the order of use.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/job.h"
#include "tests/support/letter_chunk.h"

namespace forerun {
namespace {

// dp=4, 100 steps: the same bits as with overlap off, every bucket gathered once a step in plan
// order, and no NaN of the poison ever read.
void ExpectOverlapChangesNothing(JobSpec plain) {
  plain.dp = 4;
  plain.iterations = 100;
  JobSpec overlapped = plain;
  overlapped.options.data_parallel = T0Overlapped().options.data_parallel;
  const auto expected = RunJob(plain);
  const auto result = RunJob(overlapped);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(BitDifference(*result, *expected), "");
  EXPECT_EQ(OncePerStepDifference(*result, plain.iterations), "");
  EXPECT_LT(result->losses.back(), result->losses.front());
}

TEST(Megatron950, MlpRegisteredBeforeAttention) {
  JobSpec spec = T0();
  spec.order = *RegistrationOrder::Parse("mlp-first");
  ExpectOverlapChangesNothing(spec);
}

TEST(Megatron950, AllRegisteredInReverse) {
  JobSpec spec = T0();
  spec.order = *RegistrationOrder::Parse("reversed");
  ExpectOverlapChangesNothing(spec);
}

TEST(Megatron950, RegisteredABCAndRunACB) {
  JobSpec spec = T0();
  spec.make_chunk = MakeLetterChunk(LetterModel::Running("ACB"));
  ExpectOverlapChangesNothing(spec);
}

TEST(Megatron950, ABorrowedWeightIsNeverStale) {
  JobSpec spec = T0();
  spec.make_chunk = MakeLetterChunk(LetterModel::Running("ACBC"));  // C read before its turn
  ExpectOverlapChangesNothing(spec);
}

TEST(Megatron950, TheIssueOrderIsTheForwardOrder) {
  JobSpec spec = T0Overlapped();
  spec.options.data_parallel.bucket_numel = 1;  // a bucket a parameter
  spec.dp = 2;
  spec.iterations = 1;
  spec.make_chunk = MakeLetterChunk(LetterModel::Running("ACB"));
  std::vector<std::string> order;
  spec.inspect = [&](RankTrainer& trainer, int64_t done) {
    if (done == 1 && trainer.parallel().rank() == 0) {
      for (const Bucket& bucket : trainer.data_parallel().plan().buckets()) {
        order.push_back(bucket.pieces[0].parameter->name());
      }
    }
    return absl::OkStatus();
  };
  const auto result = RunJob(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(order, (std::vector<std::string>{"table", "A", "C", "B"}));
  EXPECT_EQ(result->gathers[0], (std::vector<int>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace forerun
