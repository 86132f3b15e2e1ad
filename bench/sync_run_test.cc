// SPDX-License-Identifier: Apache-2.0
#include "bench/sync_run.h"

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace forerun {
namespace {

using std::chrono::milliseconds;

int64_t Milliseconds(double seconds) { return std::llround(seconds * 1e3); }

SyncCase EightEqual(const std::string& registration) {
  return EqualBuckets(8, registration, milliseconds(20), 1.0);
}

TEST(SyncRun, EagerInForwardOrderExposesOneGatherForEveryRegistrationOrder) {
  for (const std::string& order : RegistrationNames()) {
    const SyncResult result = RunVirtual(EightEqual(order), GatherPolicy::kForwardEager);
    EXPECT_EQ(result.exposed_gathers, 1) << order;
    EXPECT_EQ(Milliseconds(result.exposed_seconds), 20) << order;
    EXPECT_EQ(Milliseconds(result.step_seconds), 8 * 20 + 20) << order;
  }
}

TEST(SyncRun, EagerInForwardOrderHidesAllGathersWhereThereIsAnUpdate) {
  for (const std::string& order : RegistrationNames()) {
    SyncCase with_update = EightEqual(order);
    with_update.update = milliseconds(3);
    const SyncResult result = RunVirtual(with_update, GatherPolicy::kForwardEager);
    EXPECT_EQ(result.exposed_gathers, 0) << order;
    EXPECT_EQ(result.exposed_seconds, 0.0) << order;
    EXPECT_EQ(Milliseconds(result.step_seconds), 8 * 20 + 8 * 3) << order;
  }
}

TEST(SyncRun, TheRegistrationChainExposesWhatItDoesNotSeeComing) {
  const std::vector<int> expected = {1, 2, 5, 8};
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string order = RegistrationNames()[i];
    const SyncResult result = RunVirtual(EightEqual(order), GatherPolicy::kRegistrationOneAhead);
    EXPECT_EQ(result.exposed_gathers, expected[i]) << order;
    EXPECT_EQ(Milliseconds(result.exposed_seconds), expected[i] * 20) << order;
  }
}

TEST(SyncRun, TheRegistrationChainOfThreeRunACBExposesTwo) {
  SyncCase three = EqualBuckets(3, "in-order", milliseconds(20), 1.0);
  three.registration = {0, 2, 1};
  EXPECT_EQ(RunVirtual(three, GatherPolicy::kRegistrationOneAhead).exposed_gathers, 2);
}

TEST(SyncRun, BlockingExposesEveryGather) {
  const SyncResult result = RunVirtual(EightEqual("in-order"), GatherPolicy::kBlocking);
  EXPECT_EQ(result.exposed_gathers, 8);
  EXPECT_EQ(Milliseconds(result.step_seconds), 8 * 20 + 8 * 20);
}

// The stall of the forward pass is max(0, max over k of F_k - N_k) (DESIGN section 6).
TEST(SyncRun, EagerStallsAsTheCostModelSays) {
  for (const double ratio : {0.25, 0.5, 1.0, 1.5, 3.0}) {
    for (const int update : {0, 3, 40}) {
      SyncCase c = EqualBuckets(8, "shuffled", milliseconds(20), ratio);
      c.numel = {256, 2048, 128, 4096, 1024, 1024, 512, 3072};
      c.update = milliseconds(update);
      double gathered = 0.0, stall = 0.0;
      for (int k = 0; k < c.layers(); ++k) {
        gathered = std::max(gathered, (k + 1) * update * 1e-3) + c.GatherSeconds(k);
        stall = std::max(stall, gathered - (c.layers() * update + k * 20) * 1e-3);
      }
      const SyncResult result = RunVirtual(c, GatherPolicy::kForwardEager);
      EXPECT_NEAR(result.exposed_seconds, stall, 1e-7) << ratio << " " << update;
      EXPECT_NEAR(result.step_seconds, 8 * (20 + update) * 1e-3 + stall, 1e-7);
    }
  }
}

// Nothing is timed: only that both ranks get through, and what cannot depend on the machine.
TEST(SyncRun, InWallTimeEveryPolicyRunsOnTwoRanks) {
  for (const GatherPolicy policy : GatherPolicies()) {
    const SyncCase c = EqualBuckets(4, "reversed", milliseconds(1), 1.0);
    const auto result = RunWall(c, policy, 2);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_GE(Milliseconds(result->step_seconds), 4) << NameOf(policy);
  }
}

}  // namespace
}  // namespace forerun
