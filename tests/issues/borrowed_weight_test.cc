// SPDX-License-Identifier: Apache-2.0
// Measured on megatron-core 0.19.2: a function that reads another layer's weight before that layer
// runs computes with the weights of the step before, in silence; where the gather is in flight,
// three reruns give three results. Megatron-LM 728: a tied head that is a plain function of the
// embedding's weight. The kind of fault: sync points that belong to modules and not to uses.
#include "gtest/gtest.h"
#include "tests/support/job.h"
#include "tests/support/letter_chunk.h"

namespace forerun {
namespace {

void ExpectOverlapChangesNothing(const LetterModel& model) {
  JobSpec plain = T0();
  plain.make_chunk = MakeLetterChunk(model);
  plain.dp = 2;
  plain.iterations = 20;
  JobSpec overlapped = plain;
  overlapped.options.data_parallel = T0Overlapped().options.data_parallel;
  overlapped.options.data_parallel.bucket_numel = 1;  // a bucket a parameter
  const auto expected = RunJob(plain);
  const auto result = RunJob(overlapped);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(BitDifference(*result, *expected), "");
  EXPECT_EQ(OncePerStepDifference(*result, plain.iterations), "");
}

TEST(BorrowedWeight, ReadTwoLayersBeforeItsOwner) {
  ExpectOverlapChangesNothing(LetterModel::Running("AcBC"));
}

TEST(BorrowedWeight, ReadRightBeforeItsOwner) {
  ExpectOverlapChangesNothing(LetterModel::Running("ABcC"));
}

TEST(BorrowedWeight, ReadAfterItsOwner) {
  ExpectOverlapChangesNothing(LetterModel::Running("ABCa"));
}

TEST(BorrowedWeight, OnlyEverBorrowed) { ExpectOverlapChangesNothing(LetterModel::Running("Acb")); }

TEST(BorrowedWeight, AHeadThatIsTheEmbeddingsTableAloneInItsBucket) {
  LetterModel model;
  model.registered = "A";
  ExpectOverlapChangesNothing(model);
}

}  // namespace
}  // namespace forerun
