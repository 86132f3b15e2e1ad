// SPDX-License-Identifier: Apache-2.0
#include "bench/step_bound.h"

#include "gtest/gtest.h"

namespace forerun {
namespace {

TEST(StepBound, WithoutMessagesIsTheCompute) {
  EXPECT_EQ(BoundSeconds({.forward = 1.0, .backward = 2.0, .update = 0.5}), 3.5);
}

TEST(StepBound, TheLongerOfComputeAndMessagesCounts) {
  const StepWork compute_bound{1.0, 2.0, 0.5, {0.25, 0.5}, {0.5, 0.125}};
  EXPECT_EQ(BoundSeconds(compute_bound), 1.0 + 2.0 + 0.5 + 0.25 + 0.125);
  const StepWork message_bound{1.0, 2.0, 0.5, {0.25, 4.0}, {8.0, 0.125}};
  EXPECT_EQ(BoundSeconds(message_bound), 4.25 + 8.125 + 0.5 + 0.25 + 0.125);
}

}  // namespace
}  // namespace forerun
