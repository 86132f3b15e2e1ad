// SPDX-License-Identifier: Apache-2.0
// Megatron-LM 1292: RMSNorms after the attention output and after fc2, created at the end of the
// layer and run in its middle; with tp=2, pp=4 and both overlaps a chain step started a gather that
// was already in flight, and the job died. The kind of fault: a gather started twice, or not at
// all.
#include <string>

#include "gtest/gtest.h"
#include "tests/support/job.h"

namespace forerun {
namespace {

struct Layout {
  int tp, pp, dp;
};

class Megatron1292 : public testing::TestWithParam<Layout> {};

TEST_P(Megatron1292, NormsRegisteredLastAndRunInTheMiddle) {
  JobSpec plain = T0();
  plain.config.post_sublayer_norms = true;
  plain.tp = GetParam().tp;
  plain.pp = GetParam().pp;
  plain.dp = GetParam().dp;
  const auto expected = RunJob(plain);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const std::string order : {"forward", "reversed"}) {
    JobSpec overlapped = plain;
    overlapped.options.data_parallel = T0Overlapped().options.data_parallel;
    overlapped.order = *RegistrationOrder::Parse(order);
    const auto result = RunJob(overlapped);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(BitDifference(*result, *expected), "") << order;
    EXPECT_EQ(OncePerStepDifference(*result, plain.iterations), "") << order;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Megatron1292,
                         testing::Values(Layout{2, 4, 1}, Layout{2, 2, 2}, Layout{1, 1, 4}));

}  // namespace
}  // namespace forerun
