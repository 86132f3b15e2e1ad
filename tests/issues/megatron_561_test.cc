// SPDX-License-Identifier: Apache-2.0
// Megatron-LM 561, 558: sizes that no power of two divides: three data-parallel ranks, hidden 63, 3
// heads, buckets of 1000; shards were cut at the wrong places and padding was trained. The kind of
// fault: an alignment that holds for round numbers only.
#include "gtest/gtest.h"
#include "tests/support/job.h"

namespace forerun {
namespace {

TEST(Megatron561, OddSizesEqualOneRank) {
  JobSpec reference = T0();
  reference.config.hidden_size = 63;
  reference.config.num_attention_heads = reference.config.num_query_groups = 3;
  reference.config.ffn_hidden_size = 129;
  reference.options.global_batch_size = 12;
  const auto expected = RunJob(reference);
  ASSERT_TRUE(expected.ok()) << expected.status();
  JobSpec spec = reference;
  spec.dp = 3;
  spec.options.data_parallel = T0Overlapped().options.data_parallel;
  spec.options.data_parallel.bucket_numel = 1000;
  const auto result = RunJob(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(BoundDifference(*result, *expected, spec.config), "");
  EXPECT_EQ(OncePerStepDifference(*result, spec.iterations), "");
}

}  // namespace
}  // namespace forerun
