// SPDX-License-Identifier: Apache-2.0
// 300 steps with everything on that overlaps, and poison, have the bits of the same layout with
// everything off: several layouts, seeds and registration orders.
#include <string>

#include "gtest/gtest.h"
#include "models/registration_order.h"
#include "tests/support/job.h"

namespace forerun {
namespace {

constexpr int64_t kSteps = 300;

struct LongCase {
  int tp, pp, dp;
  uint64_t seed;
  const char* registration;
  bool post_sublayer_norms;
};

JobSpec Job(const LongCase& c, const JobSpec& base) {
  JobSpec spec = base;
  spec.tp = c.tp;
  spec.pp = c.pp;
  spec.dp = c.dp;
  spec.iterations = kSteps;
  spec.options.seed = c.seed;
  spec.config.post_sublayer_norms = c.post_sublayer_norms;
  spec.order = *RegistrationOrder::Parse(c.registration);
  return spec;
}

class LongOverlap : public testing::TestWithParam<LongCase> {};

TEST_P(LongOverlap, ChangesNoBitIn300Steps) {
  JobSpec plain = Job(GetParam(), T0());
  plain.order = RegistrationOrder();
  const auto result = RunJob(Job(GetParam(), T0Overlapped()));
  const auto off = RunJob(plain);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(off.ok()) << off.status();
  EXPECT_EQ(BitDifference(*result, *off), "");
  EXPECT_EQ(OncePerStepDifference(*result, kSteps), "");
}

INSTANTIATE_TEST_SUITE_P(Layouts, LongOverlap,
                         testing::Values(LongCase{1, 1, 4, 1234, "reversed", false},
                                         LongCase{1, 1, 2, 7, "shuffled:3", true},
                                         LongCase{2, 2, 2, 99, "mlp-first", false},
                                         LongCase{2, 1, 2, 5, "reversed", true},
                                         LongCase{1, 4, 2, 42, "shuffled:8", true}));

}  // namespace
}  // namespace forerun
