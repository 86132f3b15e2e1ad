// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/region.h"

#include <map>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

int64_t Draw(std::mt19937& random, int64_t low, int64_t high) {  // both included
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

// A region that is sometimes a whole box and sometimes empty.
Region RandomRegion(std::mt19937& random, const Shape& global) {
  Region region{Box::Whole(global), 0, 0};
  for (int d = 0; d < global.rank(); ++d) {
    if (Draw(random, 0, 2) == 0) continue;  // boxes that agree in a dim matter
    const int64_t begin = Draw(random, 0, global[d]);
    region.box.offset.set(d, begin);
    region.box.extent.set(d, Draw(random, 0, global[d] - begin));
  }
  const int64_t numel = region.box.extent.numel();
  region.begin = Draw(random, 0, 1) == 0 ? 0 : Draw(random, 0, numel);
  region.numel =
      Draw(random, 0, 1) == 0 ? numel - region.begin : Draw(random, 0, numel - region.begin);
  return region;
}

// The region's elements: row-major index in the global shape, to index in the region.
std::map<int64_t, int64_t> Elements(const Region& region, const Shape& global) {
  std::map<int64_t, int64_t> elements;
  for (int64_t i = 0; i < region.numel; ++i) {
    int64_t rest = region.begin + i;
    int64_t index = 0;
    int64_t stride = 1;
    for (int d = global.rank() - 1; d >= 0; --d) {
      const int64_t extent = region.box.extent[d];
      index += (region.box.offset[d] + rest % extent) * stride;
      rest /= extent;
      stride *= global[d];
    }
    elements[index] = i;
  }
  return elements;
}

TEST(Region, SharedRunsAreTheSharedElementsOfAnyTwoRegions) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 20000; ++trial) {
    Shape global;
    if (const int64_t rank = Draw(random, 0, 4); rank > 0) {
      global = Shape(std::vector<int64_t>(static_cast<size_t>(rank), 1));
      for (int d = 0; d < rank; ++d) global.set(d, Draw(random, 1, 5));
    }
    const Region to = RandomRegion(random, global);
    const Region from = RandomRegion(random, global);
    ASSERT_TRUE(IsInside(to, global));
    const std::map<int64_t, int64_t> from_elements = Elements(from, global);
    std::map<int64_t, int64_t> expected;  // element of `to` to element of `from`
    for (const auto& [index, element] : Elements(to, global)) {
      const auto it = from_elements.find(index);
      if (it != from_elements.end()) expected[element] = it->second;
    }
    std::map<int64_t, int64_t> shared;
    int64_t end = 0;
    for (const SharedRun& run : SharedRuns(to, from)) {
      ASSERT_GE(run.to, end) << "runs ascend";
      ASSERT_GT(run.count, 0);
      end = run.to + run.count;
      for (int64_t i = 0; i < run.count; ++i) shared[run.to + i] = run.from + i;
    }
    ASSERT_EQ(shared, expected) << global;
  }
}

TEST(Region, EqualBoxesShareOneRunHoweverTheyAreCut) {
  const Box box{Shape{2, 4, 0}, Shape{3, 5, 7}};
  EXPECT_THAT(SharedRuns({box, 10, 50}, {box, 40, 60}), ElementsAre(SharedRun{30, 0, 20}));
  EXPECT_THAT(SharedRuns({box, 10, 30}, {box, 40, 60}), IsEmpty());
  const Box rows{Shape{4, 4, 0}, Shape{9, 5, 7}};  // agrees in all dims but the first
  EXPECT_THAT(SharedRuns({box, 0, 105}, {rows, 0, 315}), ElementsAre(SharedRun{70, 0, 35}));
}

TEST(Region, AScalarIsOneElement) {
  const Region scalar{Box{}, 0, 1};
  EXPECT_TRUE(IsInside(scalar, Shape{}));
  EXPECT_THAT(SharedRuns(scalar, scalar), ElementsAre(SharedRun{0, 0, 1}));
}

TEST(Region, IsInsideChecksEveryBound) {
  const Shape global{4, 6};
  EXPECT_TRUE(IsInside({{Shape{1, 2}, Shape{3, 4}}, 2, 10}, global));
  EXPECT_FALSE(IsInside({{Shape{1, 2}, Shape{3, 4}}, 3, 10}, global));
  EXPECT_FALSE(IsInside({{Shape{1, 2}, Shape{3, 4}}, -1, 1}, global));
  EXPECT_FALSE(IsInside({{Shape{1, 2}, Shape{3, 4}}, 0, -1}, global));
  EXPECT_FALSE(IsInside({{Shape{1, 3}, Shape{3, 4}}, 0, 1}, global));
  EXPECT_FALSE(IsInside({{Shape{1}, Shape{3}}, 0, 1}, global));
  const int64_t huge = INT64_MAX;
  EXPECT_FALSE(IsInside({{Shape{huge, 0}, Shape{3, 4}}, 0, 1}, global));
  EXPECT_FALSE(IsInside({{Shape{0, 0}, Shape{huge, huge}}, 0, 1}, Shape{huge, huge}));
  EXPECT_FALSE(IsInside({{Shape{0, 0}, Shape{3, 4}}, 5, huge}, global));
}

}  // namespace
}  // namespace forerun
