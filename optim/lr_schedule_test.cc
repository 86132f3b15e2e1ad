// SPDX-License-Identifier: Apache-2.0
#include "optim/lr_schedule.h"

#include "gtest/gtest.h"
#include "optim/grad_clip.h"

namespace forerun {
namespace {

TEST(LrSchedule, WarmsUpLinearlyToTheFullRate) {
  const LrSchedule schedule{1.0, 0.1, LrDecay::kCosine, 4, 20};
  EXPECT_DOUBLE_EQ(schedule.At(0), 0.25);
  EXPECT_DOUBLE_EQ(schedule.At(3), 1.0);
  EXPECT_DOUBLE_EQ(schedule.At(4), 1.0);
}

TEST(LrSchedule, DecaysThroughTheMiddleToTheMinimum) {
  for (LrDecay decay : {LrDecay::kCosine, LrDecay::kLinear}) {
    const LrSchedule schedule{1.0, 0.2, decay, 0, 10};
    EXPECT_DOUBLE_EQ(schedule.At(0), 1.0);
    EXPECT_NEAR(schedule.At(5), 0.6, 1e-12);
    EXPECT_DOUBLE_EQ(schedule.At(10), 0.2);
    EXPECT_DOUBLE_EQ(schedule.At(1000), 0.2);
    for (int i = 1; i <= 10; ++i) EXPECT_LT(schedule.At(i), schedule.At(i - 1));
  }
  EXPECT_DOUBLE_EQ((LrSchedule{1.0, 0.2, LrDecay::kConstant, 0, 10}.At(1000)), 1.0);
}

TEST(LrSchedule, AnUnknownStyleIsNamed) {
  EXPECT_EQ(LrDecayByName("inverse").status().message(),
            "--lr-decay-style inverse is not known; choose constant, linear or cosine");
}

TEST(ClipFactor, ShrinksOnlyWhatIsAboveTheLimit) {
  EXPECT_EQ(ClipFactor(0.5, 1.0), 1.0f);
  EXPECT_NEAR(ClipFactor(4.0, 1.0), 0.25, 1e-6);
  EXPECT_EQ(ClipFactor(4.0, 0.0), 1.0f);
}

}  // namespace
}  // namespace forerun
