// SPDX-License-Identifier: Apache-2.0
// PyTorch 30509, torchtitan 2042, 3590: the loss of a run depended on the size of its buckets, or
// on the order of parameters in them. The kind of fault: a sum, or a norm, whose order of additions
// follows the buckets.
#include <string>

#include "gtest/gtest.h"
#include "tests/support/job.h"

namespace forerun {
namespace {

TEST(Pytorch30509, BucketCapsAndLayoutOrderChangeNoBit) {
  JobSpec plain = T0();
  plain.dp = 4;
  plain.iterations = 3;
  const auto expected = RunJob(plain);
  ASSERT_TRUE(expected.ok()) << expected.status();
  constexpr int64_t kFloat = 4;
  for (int64_t cap : {int64_t{1} << 10, int64_t{1} << 20, int64_t{1} << 40}) {  // bytes
    for (const char* order : {"forward", "reversed"}) {
      JobSpec spec = plain;
      spec.options.data_parallel = T0Overlapped().options.data_parallel;
      spec.options.data_parallel.bucket_numel = cap / kFloat;
      spec.order = *RegistrationOrder::Parse(order);
      const auto result = RunJob(spec);
      ASSERT_TRUE(result.ok()) << result.status();
      EXPECT_EQ(BitDifference(*result, *expected), "") << cap << " bytes, " << order;
      EXPECT_EQ(result->buckets[0] > 1, cap <= int64_t{1} << 10);
    }
  }
}

}  // namespace
}  // namespace forerun
