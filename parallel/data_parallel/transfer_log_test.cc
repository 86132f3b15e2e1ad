// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/transfer_log.h"

#include "gtest/gtest.h"

namespace forerun {
namespace {

class TransferLogTest : public testing::Test {
 protected:
  double now_ = 0.0;
  TransferLog log_{{100, 200}, [this] { return now_; }};

  int64_t Run(int bucket, double issued, double started, double ended) {
    now_ = issued;
    const int64_t id = log_.Issued(bucket, 1);
    now_ = started;
    log_.Started(id);
    now_ = ended;
    log_.Ended(id);
    return id;
  }
};

TEST_F(TransferLogTest, KeepsEveryMomentOfAMessage) {
  const int64_t id = Run(1, 2.0, 3.0, 7.0);
  log_.Wanted(id, 5.0);
  log_.Wanted(id, 6.0);  // not the first
  log_.Waited(id, 2.0, true, "layer");
  const std::vector<TransferEvent> events = log_.TakeEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].bucket, 1);
  EXPECT_EQ(events[0].issued, 2.0);
  EXPECT_EQ(events[0].started, 3.0);
  EXPECT_EQ(events[0].ended, 7.0);
  EXPECT_EQ(events[0].wanted, 5.0);
  EXPECT_EQ(events[0].waited, 2.0);
  const TransferRecord record = log_.records()[1];
  EXPECT_EQ(record.bytes, 200);
  EXPECT_EQ(record.transfers, 1);
  EXPECT_EQ(record.waits, 1);
  EXPECT_EQ(record.misses, 1);
  EXPECT_EQ(record.waited, 2.0);
  EXPECT_EQ(record.in_flight, 4.0);
  EXPECT_EQ(record.first_reader, "layer");
}

TEST_F(TransferLogTest, TheFirstEndCounts) {
  const int64_t id = Run(0, 0.0, 1.0, 2.0);
  now_ = 9.0;
  log_.Ended(id);
  EXPECT_EQ(log_.records()[0].transfers, 1);
  EXPECT_EQ(log_.records()[0].in_flight, 1.0);
}

TEST_F(TransferLogTest, EventsAreTakenInIssueOrderOnceTheyAreComplete) {
  const int64_t first = Run(0, 0.0, 0.0, 1.0);
  const int64_t second = Run(1, 0.0, 0.0, 2.0);
  log_.Wanted(second, 3.0);
  EXPECT_TRUE(log_.TakeEvents().empty()) << "nobody has asked for the first one yet";
  log_.Wanted(first, 4.0);
  EXPECT_EQ(BucketsOf(log_.TakeEvents()), (std::vector<int>{0, 1}));
  EXPECT_TRUE(log_.TakeEvents().empty());
}

TEST_F(TransferLogTest, AMessageThatNobodyAskedForIsCompleteOnceTheNextFollows) {
  Run(0, 0.0, 0.0, 1.0);
  EXPECT_TRUE(log_.TakeEvents().empty());
  Run(0, 2.0, 2.0, 3.0);
  EXPECT_EQ(log_.TakeEvents().size(), 1u);
  EXPECT_EQ(log_.TakeAllEvents().size(), 1u);
}

TEST_F(TransferLogTest, OldEventsGiveWayAndTheSumsStay) {
  constexpr int kMany = 20000;
  const int64_t first = Run(0, 0.0, 0.0, 1.0);
  for (int i = 1; i < kMany; ++i) Run(0, 0.0, 0.0, 1.0);
  log_.Wanted(first, 1.0);  // gone: of no effect
  EXPECT_LT(log_.TakeAllEvents().size(), static_cast<size_t>(kMany));
  EXPECT_EQ(log_.records()[0].transfers, kMany);
}

TEST_F(TransferLogTest, AResetKeepsSizesOnly) {
  log_.Waited(Run(0, 0.0, 0.0, 1.0), 1.0, false, "layer");
  log_.ResetRecords();
  EXPECT_EQ(log_.records()[0].bytes, 100);
  EXPECT_EQ(log_.records()[0].transfers, 0);
  EXPECT_EQ(log_.records()[0].waits, 0);
  EXPECT_TRUE(log_.records()[0].first_reader.empty());
  EXPECT_EQ(log_.waited(), 1.0) << "of all time";
}

}  // namespace
}  // namespace forerun
