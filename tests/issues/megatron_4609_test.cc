// SPDX-License-Identifier: Apache-2.0
// Megatron-LM 4609: a buffer that was the target of gathers and then gradient memory was not cleared
// between, and gradient norms were wrong from the first step on. The kind of fault: memory with two
// meanings. Here parameters and gradients share none; the norms of three steps have the bits of a
// run in which nothing overlaps.
#include "gtest/gtest.h"
#include "tests/support/job.h"

namespace forerun {
namespace {

TEST(Megatron4609, GradientNormsOfThreeStepsAreThoseOfNoOverlap) {
  for (int64_t bucket_numel : {int64_t{1}, int64_t{8192}, int64_t{1} << 30}) {
    JobSpec overlapped = T0Overlapped();
    overlapped.dp = 4;
    overlapped.iterations = 3;
    overlapped.options.data_parallel.bucket_numel = bucket_numel;
    JobSpec plain = overlapped;
    plain.options.data_parallel = T0().options.data_parallel;
    const auto result = RunJob(overlapped);
    const auto off = RunJob(plain);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(off.ok()) << off.status();
    EXPECT_EQ(result->grad_norms, off->grad_norms) << bucket_numel;
    EXPECT_EQ(BitDifference(*result, *off), "") << bucket_numel;
  }
}

}  // namespace
}  // namespace forerun
