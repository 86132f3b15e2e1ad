// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/link/virtual_clock.h"

#include <cstdint>
#include <functional>
#include <string>

#include "gtest/gtest.h"

namespace forerun::comm {
namespace {

Clock::Time Ns(int64_t count) { return Clock::Time(count); }

TEST(VirtualClock, TimeStandsStillUntilItIsMoved) {
  VirtualClock clock;
  bool called = false;
  clock.CallAt(Ns(0), [&] { called = true; });
  EXPECT_FALSE(called);
  EXPECT_EQ(clock.Now(), Ns(0));
  clock.AdvanceBy(Ns(7));
  EXPECT_TRUE(called);
  EXPECT_EQ(clock.Now(), Ns(7));
}

TEST(VirtualClock, CallsInOrderOfTimeThenOfAsking) {
  VirtualClock clock;
  std::string order;
  const auto add = [&](char name, int64_t at) {
    clock.CallAt(Ns(at), [&order, &clock, name, at] {
      order += name;
      EXPECT_EQ(clock.Now(), Ns(at));
    });
  };
  add('c', 20);
  add('a', 10);
  add('d', 20);
  add('b', 10);
  clock.AdvanceTo(Ns(19));
  EXPECT_EQ(order, "ab");
  clock.AdvanceTo(Ns(20));
  EXPECT_EQ(order, "abcd");
}

TEST(VirtualClock, ATimeThatHasPassedMeansNow) {
  VirtualClock clock;
  clock.AdvanceTo(Ns(50));
  clock.CallAt(Ns(10), [&] { EXPECT_EQ(clock.Now(), Ns(50)); });
  EXPECT_TRUE(clock.Advance());
  EXPECT_FALSE(clock.Advance());
  EXPECT_EQ(clock.Now(), Ns(50));
}

TEST(VirtualClock, CallbacksThatAskForOthersAreServedToTheEnd) {
  VirtualClock clock;
  int left = 5;
  std::function<void()> next = [&] {
    if (--left > 0) clock.CallAt(clock.Now() + Ns(3), next);
  };
  clock.CallAt(Ns(1), next);
  clock.AdvanceToTheEnd();
  EXPECT_EQ(left, 0);
  EXPECT_EQ(clock.Now(), Ns(1 + 4 * 3));
}

}  // namespace
}  // namespace forerun::comm
