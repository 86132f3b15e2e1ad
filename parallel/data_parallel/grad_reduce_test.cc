// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/grad_reduce.h"

#include <algorithm>
#include <vector>

#include "core/random/random.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

// Three buckets of two parameters each; order 2, 1, 0.
ReducePlan Plan() { return {{{0, 1}, {2, 3}, {4, 5}}, {0, 0, 0, 0, 0, 0}, {2, 1, 0}, 1}; }

TEST(GradReduce, IssuesInPlanOrderWhateverOrderContributionsComeIn) {
  GradReduce reduce(Plan());
  reduce.BeginStep(1);
  reduce.OnAnnounced(0, {0, 1, 2, 3, 4, 5});
  for (int p : {0, 1, 2, 3, 5}) EXPECT_TRUE(reduce.OnContributed(p).reduce.empty());
  EXPECT_EQ(reduce.OnContributed(4).reduce, (std::vector<int>{2, 1, 0}));
  EXPECT_TRUE(reduce.AllIssued());
}

TEST(GradReduce, WaitsForAllMicrobatches) {
  GradReduce reduce(Plan());
  reduce.BeginStep(2);
  reduce.OnAnnounced(0, {0, 1, 2, 3, 4, 5});
  for (int p : {5, 4, 3, 2, 1, 0}) EXPECT_TRUE(reduce.OnContributed(p).reduce.empty());
  reduce.OnAnnounced(0, {0, 1, 2, 3, 4, 5});
  std::vector<int> issued;
  for (int p : {5, 4, 3, 2, 1, 0}) {
    for (int b : reduce.OnContributed(p).reduce) issued.push_back(b);
  }
  EXPECT_EQ(issued, (std::vector<int>{2, 1, 0}));
}

TEST(GradReduce, CountsComeFromTheTapesOfThisStep) {
  GradReduce reduce(Plan());
  for (int uses : {1, 2}) {
    reduce.BeginStep(1);
    std::vector<int> contributions = {0, 1, 2, 3, 5};
    contributions.insert(contributions.end(), uses, 4);
    reduce.OnAnnounced(0, contributions);
    EXPECT_TRUE(reduce.OnContributed(5).reduce.empty());
    for (int i = 1; i < uses; ++i) EXPECT_TRUE(reduce.OnContributed(4).reduce.empty());
    EXPECT_EQ(reduce.OnContributed(4).reduce, (std::vector<int>{2}));
    for (int p : {3, 2, 1, 0}) reduce.OnContributed(p);
  }
}

TEST(GradReduce, WhatNoTapeUsedIsZeroFilledAtTheLastAnnouncement) {
  GradReduce reduce(Plan());
  reduce.BeginStep(2);
  EXPECT_TRUE(reduce.OnAnnounced(0, {0, 1, 2, 3}).zero_fill.empty());
  const GradReduce::Commands commands = reduce.OnAnnounced(0, {0, 1, 2, 3, 5});
  EXPECT_EQ(commands.zero_fill, (std::vector<int>{4}));
  EXPECT_TRUE(commands.reduce.empty());
  EXPECT_EQ(reduce.OnContributed(5).reduce, (std::vector<int>{2}));
}

TEST(GradReduce, AnUnannouncedContributionIsRefused) {
  GradReduce reduce(Plan());
  reduce.BeginStep(1);
  reduce.OnAnnounced(0, {0});
  reduce.OnContributed(0);
  EXPECT_DEATH(reduce.OnContributed(0), "what its tapes announced");
}

TEST(GradReduce, AStepDoesNotBeginWithBucketsLeft) {
  GradReduce reduce(Plan());
  reduce.BeginStep(1);
  EXPECT_DEATH(reduce.BeginStep(1), "3 buckets of the last one not reduced");
}

// Random microbatch counts, uses and arrival orders over two chunks and cut parameters.
TEST(GradReduce, EveryBucketOnceInOrderAfterItsLastContribution) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const RandomKey key = RandomKey::Root(seed);
    uint64_t draw = 0;
    const auto random = [&](int n) { return static_cast<int>(UniformAt(key, draw++) * n); };
    // Parameter 2 is cut over two buckets.
    GradReduce reduce({{{0, 1}, {2}, {2}, {3, 4}}, {0, 0, 0, 1, 1}, {3, 2, 1, 0}, 2});
    for (int step = 0; step < 3; ++step) {
      const int microbatches = 1 + random(4);
      reduce.BeginStep(microbatches);
      std::vector<int> issued, left(5, 0);
      std::vector<int> announced(2, 0);
      std::vector<bool> zeroed(5, false);
      std::vector<int> total(5, 0);
      const auto take = [&](const GradReduce::Commands& commands) {
        for (int p : commands.zero_fill) zeroed[p] = true;
        for (int b : commands.reduce) {
          issued.push_back(b);
          for (int p : reduce.plan().parameters_of_bucket[b]) {
            ASSERT_EQ(left[p], 0);
            ASSERT_EQ(announced[reduce.plan().chunk_of_parameter[p]], microbatches);
            ASSERT_EQ(zeroed[p], total[p] == 0);
          }
        }
      };
      while (!reduce.AllIssued()) {
        const int chunk = random(2);
        const int parameter = random(5);
        if (random(2) == 0 && announced[chunk] < microbatches) {
          ++announced[chunk];
          std::vector<int> uses;
          for (int p = 0; p < 5; ++p) {
            if (reduce.plan().chunk_of_parameter[p] != chunk) continue;
            uses.insert(uses.end(), random(3), p);
          }
          for (int p : uses) ++left[p], ++total[p];
          take(reduce.OnAnnounced(chunk, uses));
        } else if (left[parameter] > 0) {
          --left[parameter];
          take(reduce.OnContributed(parameter));
        }
      }
      ASSERT_EQ(issued, (std::vector<int>{3, 2, 1, 0})) << "seed " << seed;
    }
  }
}

TEST(GradReduce, ANewOrderHoldsFromAStepBoundaryOn) {
  GradReduce reduce(Plan());
  reduce.SetOrder({1, 2, 0});
  reduce.BeginStep(1);
  reduce.OnAnnounced(0, {0, 1, 2, 3, 4, 5});
  for (int p : {5, 4, 3}) EXPECT_TRUE(reduce.OnContributed(p).reduce.empty());
  EXPECT_EQ(reduce.OnContributed(2).reduce, (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace forerun
