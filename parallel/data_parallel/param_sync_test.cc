// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/param_sync.h"

#include <numeric>
#include <vector>

#include "core/random/random.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

GatherPlan Plan(int buckets, int64_t window) {
  GatherPlan plan;
  plan.order.resize(buckets);
  std::iota(plan.order.begin(), plan.order.end(), 0);
  plan.bytes.assign(buckets, 10);
  plan.window_bytes = window;
  return plan;
}

void Update(ParamSync& sync, int buckets, std::vector<int>& started) {
  for (int b = 0; b < buckets; ++b) {
    sync.OnAccepted(b);
    for (int s : sync.OnPublished(b)) started.push_back(s);
  }
}

TEST(ParamSync, FillsTheWindowAndGoesOnAtCompletionsOnly) {
  ParamSync sync(Plan(5, 20));
  std::vector<int> started;
  Update(sync, 5, started);
  EXPECT_EQ(started, (std::vector<int>{0, 1}));
  EXPECT_EQ(sync.OnGathered(1), (std::vector<int>{2}));
  EXPECT_FALSE(sync.Current(0));
  EXPECT_TRUE(sync.Current(1));
  EXPECT_EQ(sync.OnGathered(0), (std::vector<int>{3}));
  EXPECT_EQ(sync.OnGathered(2), (std::vector<int>{4}));
}

TEST(ParamSync, AReaderNeverJumps) {
  ParamSync sync(Plan(5, 10));
  std::vector<int> started;
  Update(sync, 5, started);
  EXPECT_EQ(started, (std::vector<int>{0}));
  EXPECT_EQ(sync.OnWanted(3), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(sync.OnWanted(3), std::vector<int>{});
  EXPECT_EQ(sync.OnWanted(1), std::vector<int>{});
}

TEST(ParamSync, WithoutAWindowNothingStartsBeforeItIsWanted) {
  ParamSync sync(Plan(3, 0));
  std::vector<int> started;
  Update(sync, 3, started);
  EXPECT_TRUE(started.empty());
  EXPECT_EQ(sync.OnWanted(1), (std::vector<int>{0, 1}));
  EXPECT_TRUE(sync.OnGathered(0).empty());
}

TEST(ParamSync, WithoutAWindowTheRestStartsWhenTheReadsHaveEnded) {
  ParamSync sync(Plan(3, 0));
  std::vector<int> started;
  Update(sync, 3, started);
  EXPECT_EQ(sync.OnWanted(0), (std::vector<int>{0}));
  EXPECT_EQ(sync.OnReadsEnded(), (std::vector<int>{1, 2}));
  EXPECT_EQ(sync.OnReadsEnded(), std::vector<int>{});
}

TEST(ParamSync, WithAWindowTheEndOfReadsStartsNothing) {
  ParamSync sync(Plan(3, 10));
  std::vector<int> started;
  Update(sync, 3, started);
  EXPECT_EQ(sync.OnReadsEnded(), std::vector<int>{});
}

TEST(ParamSync, ABucketIsNotAcceptedAgainBeforeItsGatherEnded) {
  ParamSync sync(Plan(2, 100));
  std::vector<int> started;
  Update(sync, 2, started);
  EXPECT_DEATH(sync.OnAccepted(0), "before its gather of version 1 ended");
}

TEST(ParamSync, ABucketIsNotReadWhileItIsUpdated) {
  ParamSync sync(Plan(2, 100));
  sync.OnAccepted(0);
  EXPECT_DEATH(sync.OnWanted(0), "while the optimizer updates it");
}

// Whatever the completions and the wishes of readers: plan order, each bucket once a step, never
// before its publication.
TEST(ParamSync, IssuesOneSequenceWhateverHappens) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const RandomKey key = RandomKey::Root(seed);
    uint64_t draw = 0;
    const auto random = [&](int n) { return static_cast<int>(UniformAt(key, draw++) * n); };
    const int buckets = 1 + random(8);
    ParamSync sync(Plan(buckets, 10 * random(5)));
    for (int step = 0; step < 3; ++step) {
      std::vector<int> started, in_flight;
      const auto take = [&](const std::vector<int>& commands) {
        started.insert(started.end(), commands.begin(), commands.end());
        in_flight.insert(in_flight.end(), commands.begin(), commands.end());
      };
      int published = 0;
      while (published < buckets || !in_flight.empty() ||
             static_cast<int>(started.size()) < buckets) {
        const int what = random(3);
        if (what == 0 && published < buckets) {
          sync.OnAccepted(published);
          take(sync.OnPublished(published++));
        } else if (what == 1 && !in_flight.empty()) {
          const int pick = random(static_cast<int>(in_flight.size()));
          const int bucket = in_flight[pick];
          in_flight.erase(in_flight.begin() + pick);
          take(sync.OnGathered(bucket));
        } else if (what == 2 && published == buckets) {
          take(sync.OnWanted(random(buckets)));
        }
        ASSERT_LE(static_cast<int>(started.size()), published)
            << "gathered before it was published";
      }
      std::vector<int> expected(buckets);
      std::iota(expected.begin(), expected.end(), 0);
      ASSERT_EQ(started, expected) << "seed " << seed;
      for (int b = 0; b < buckets; ++b) ASSERT_EQ(sync.version(b), step + 1);
    }
  }
}

TEST(ParamSync, ANewOrderHoldsFromAStepBoundaryOn) {
  ParamSync sync(Plan(3, 100));
  std::vector<int> started;
  Update(sync, 3, started);
  EXPECT_EQ(started, (std::vector<int>{0, 1, 2}));
  for (int b : {0, 1, 2}) sync.OnGathered(b);
  sync.SetOrder({2, 0, 1});
  started.clear();
  Update(sync, 3, started);  // published in another order: 2 is waited for
  EXPECT_EQ(started, (std::vector<int>{2, 0, 1}));
}

TEST(ParamSyncDeathTest, NoNewOrderWhileABucketIsUnderWay) {
  ParamSync sync(Plan(2, 100));
  sync.OnAccepted(0);
  EXPECT_DEATH(sync.SetOrder({1, 0}), "no step boundary");
}

}  // namespace
}  // namespace forerun
