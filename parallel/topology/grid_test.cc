// SPDX-License-Identifier: Apache-2.0
#include "parallel/topology/grid.h"

#include <set>

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

TEST(Grid, AnImpossibleWorldIsRefusedInOneSentence) {
  EXPECT_EQ(Grid::Create(6, 4, 1).status().message(),
            "a world of 6 ranks is not a multiple of tensor size 4 x pipeline size 1");
}

}  // namespace
}  // namespace forerun
