// SPDX-License-Identifier: Apache-2.0
#include "parallel/topology/grid.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace forerun {
namespace {

TEST(Grid, RankAndCoordinatesDetermineEachOther) {
  for (int tp : {1, 2, 3}) {
    for (int pp : {1, 2, 4}) {
      for (int dp : {1, 2, 5}) {
        const Grid grid = *Grid::Create(tp * pp * dp, tp, pp);
        EXPECT_EQ(grid.dp_size(), dp);
        for (int rank = 0; rank < grid.world_size(); ++rank) {
          EXPECT_EQ(grid.RankAt(grid.CoordinatesOf(rank)), rank);
        }
      }
    }
  }
}

TEST(Grid, GroupsAlongEachAxisPartitionTheWorld) {
  const Grid grid = *Grid::Create(24, 2, 4);
  for (Axis axis : {Axis::kTensor, Axis::kData, Axis::kPipeline}) {
    std::multiset<int> seen;
    for (int rank = 0; rank < grid.world_size(); ++rank) {
      const std::vector<int> members = grid.Members(axis, rank);
      EXPECT_NE(std::find(members.begin(), members.end(), rank), members.end());
      if (members[0] == rank) seen.insert(members.begin(), members.end());
      for (int other : members) EXPECT_EQ(grid.Members(axis, other), members);
    }
    EXPECT_EQ(seen.size(), 24u);
    EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), 24u);
  }
}

TEST(Grid, TensorParallelRanksAreNeighbours) {
  const Grid grid = *Grid::Create(16, 4, 2);
  EXPECT_EQ(grid.Members(Axis::kTensor, 5), (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(grid.Members(Axis::kData, 5), (std::vector<int>{1, 5}));
  EXPECT_EQ(grid.Members(Axis::kPipeline, 5), (std::vector<int>{5, 13}));
  EXPECT_EQ(grid.EmbeddingMembers(5), (std::vector<int>{5, 13}));
}

TEST(Grid, TheEmbeddingIsOnTheFirstAndTheLastStage) {
  const Grid one_stage = *Grid::Create(4, 2, 1);
  EXPECT_EQ(one_stage.EmbeddingMembers(3), (std::vector<int>{3}));
  const Grid three_stages = *Grid::Create(12, 2, 3);  // stages are 4 ranks apart
  for (int rank : {1, 5, 9}) {
    EXPECT_EQ(three_stages.EmbeddingMembers(rank), (std::vector<int>{1, 9}));
  }
}

// Two groups of different axes share one rank at most, so that a sum over one axis and then over
// another counts each rank once.
TEST(Grid, GroupsOfDifferentAxesMeetInOneRank) {
  const Grid grid = *Grid::Create(24, 2, 3);
  const std::vector<Axis> axes = {Axis::kTensor, Axis::kData, Axis::kPipeline};
  for (int rank = 0; rank < grid.world_size(); ++rank) {
    for (Axis a : axes) {
      for (Axis b : axes) {
        if (a == b) continue;
        std::vector<int> of_a = grid.Members(a, rank), of_b = grid.Members(b, rank), common;
        std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                              std::back_inserter(common));
        EXPECT_EQ(common, std::vector<int>{rank});
      }
    }
  }
}

TEST(Grid, AnImpossibleWorldIsRefusedInOneSentence) {
  EXPECT_EQ(Grid::Create(6, 4, 1).status().message(),
            "a world of 6 ranks is not a multiple of tensor size 4 x pipeline size 1");
  EXPECT_EQ(Grid::Create(8, 0, 1).status().message(), "tensor size 0 is not a number of ranks");
  EXPECT_EQ(Grid::Create(8, 1, -2).status().message(), "pipeline size -2 is not a number of ranks");
  EXPECT_EQ(Grid::Create(0, 1, 1).status().message(), "world size 0 is not a number of ranks");
  constexpr int kMost = std::numeric_limits<int>::max();
  EXPECT_FALSE(Grid::Create(8, kMost, kMost).ok());  // the product does not overflow
}

TEST(Grid, NobodyStandsOutsideTheWorld) {
  const Grid grid = *Grid::Create(8, 2, 2);
  EXPECT_DEATH(grid.CoordinatesOf(8), "rank 8 of 8");
  EXPECT_DEATH(grid.RankAt({0, 2, 0}), "no rank stands at tp 0, dp 2, pp 0");
}

}  // namespace
}  // namespace forerun
