// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/link/link.h"

#include "gtest/gtest.h"
#include "parallel/comm/link/virtual_clock.h"

namespace forerun::comm {
namespace {

Clock::Time Ns(int64_t count) { return Clock::Time(count); }

TEST(WireBytes, AreThoseOfARing) {
  EXPECT_EQ(WireBytes(OpKind::kAllGather, 4000, 4), 3000);
  EXPECT_EQ(WireBytes(OpKind::kReduceScatter, 4000, 4), 3000);
  EXPECT_EQ(WireBytes(OpKind::kAllReduce, 4000, 4), 6000);
  EXPECT_EQ(WireBytes(OpKind::kAllReduce, 10, 3), 13);
  EXPECT_EQ(WireBytes(OpKind::kBroadcast, 4000, 4), 4000);
  EXPECT_EQ(WireBytes(OpKind::kSend, 4000, 4), 4000);
  EXPECT_EQ(WireBytes(OpKind::kRecv, 4000, 4), 4000);
  EXPECT_EQ(WireBytes(OpKind::kBarrier, 4000, 4), 0);
}

TEST(Link, TimeIsLatencyAndBytesOverBandwidth) {
  VirtualClock clock;
  const Link link({.latency = Ns(500), .bytes_per_second = 2e9}, clock);
  EXPECT_EQ(link.TimeOf(0), Ns(500));
  EXPECT_EQ(link.TimeOf(3000), Ns(2000));
  EXPECT_EQ(link.TimeOf(1 << 30), Ns(500 + (1 << 29)));
  const Link free({}, clock);
  EXPECT_EQ(free.TimeOf(1 << 30), Ns(0));
}

TEST(Link, CarriesOneOperationAfterTheOther) {
  VirtualClock clock;
  Link link({.latency = Ns(10), .bytes_per_second = 1e9}, clock);
  const Link::Occupancy first = link.Occupy(90);
  const Link::Occupancy second = link.Occupy(40);
  EXPECT_EQ(first.start, Ns(0));
  EXPECT_EQ(first.end, Ns(100));
  EXPECT_EQ(second.start, Ns(100));
  EXPECT_EQ(second.end, Ns(150));
  clock.AdvanceTo(Ns(400));
  const Link::Occupancy third = link.Occupy(0);
  EXPECT_EQ(third.start, Ns(400));
  EXPECT_EQ(third.end, Ns(410));
}

}  // namespace
}  // namespace forerun::comm
