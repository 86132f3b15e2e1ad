// SPDX-License-Identifier: Apache-2.0
#include "models/recompute_plan.h"

#include <vector>

#include "gtest/gtest.h"

namespace forerun {
namespace {

using Method = RecomputePlan::Method;
using Segments = std::vector<LayerSegment>;

TEST(RecomputePlan, WithoutAMethodAllLayersKeepAll) {
  EXPECT_EQ(SegmentsOf(3, {}), (Segments{{{0, 3}, false}}));
}

TEST(RecomputePlan, UniformGroupsAllLayersAndTheLastGroupMayBeShorter) {
  EXPECT_EQ(SegmentsOf(4, {Method::kUniform, 2}), (Segments{{{0, 2}, true}, {{2, 4}, true}}));
  EXPECT_EQ(SegmentsOf(3, {Method::kUniform, 2}), (Segments{{{0, 2}, true}, {{2, 3}, true}}));
  EXPECT_EQ(SegmentsOf(3, {Method::kUniform, 9}), (Segments{{{0, 3}, true}}));
}

TEST(RecomputePlan, BlockTakesTheFirstLayersOneByOne) {
  EXPECT_EQ(SegmentsOf(4, {Method::kBlock, 2}),
            (Segments{{{0, 1}, true}, {{1, 2}, true}, {{2, 4}, false}}));
  EXPECT_EQ(SegmentsOf(1, {Method::kBlock, 2}), (Segments{{{0, 1}, true}}));
}

}  // namespace
}  // namespace forerun
