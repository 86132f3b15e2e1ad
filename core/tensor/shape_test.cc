// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/shape.h"

#include <vector>

#include "gtest/gtest.h"

namespace forerun {
namespace {

TEST(Shape, ANegativeDimCountsFromTheLast) {
  const Shape shape = {2, 3, 5};
  for (int dim = 0; dim < 3; ++dim) EXPECT_EQ(shape[dim - 3], shape[dim]);
  EXPECT_DEATH(shape[3], "dim 3 of rank 3");
  EXPECT_DEATH(shape[-4], "dim -4 of rank 3");
}

TEST(Shape, AScalarHasOneElementAndAnEmptyDimNone) {
  EXPECT_EQ(Shape().numel(), 1);
  EXPECT_EQ((Shape{4, 0, 7}).numel(), 0);
  EXPECT_EQ((Shape{2, 3, 5}).numel(), 30);
}

TEST(Shape, StridesAreProductsOfTheInnerExtents) {
  EXPECT_EQ((Shape{2, 3, 5}).ContiguousStrides(), (Shape{15, 5, 1}));
  EXPECT_EQ(Shape{7}.ContiguousStrides(), Shape{1});
  EXPECT_EQ(Shape().ContiguousStrides(), Shape());
}

TEST(Shape, EqualityNeedsTheSameRank) {
  EXPECT_FALSE((Shape{2, 3}) == (Shape{2, 3, 1}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{3, 2}));
  Shape shape = {2, 3, 1};
  shape.set(-1, 4);
  EXPECT_EQ(shape, (Shape{2, 3, 4}));
}

TEST(Shape, WhatIsNoShapeDies) {
  const std::vector<int64_t> seven(7, 1);
  EXPECT_DEATH((Shape{absl::Span<const int64_t>(seven)}), "7 vs. 6");
  EXPECT_DEATH((Shape{2, -1}), "extent of dim 1");
}

TEST(Shape, PrintsItsExtents) {
  EXPECT_EQ((Shape{2, 3}).ToString(), "[2, 3]");
  EXPECT_EQ(Shape().ToString(), "[]");
}

TEST(Box, TheWholeCoversItsShape) {
  const Box box = Box::Whole({4, 6});
  EXPECT_EQ(box.offset, (Shape{0, 0}));
  EXPECT_TRUE(box.Covers({4, 6}));
  EXPECT_FALSE((Box{{0, 0}, {2, 6}}).Covers({4, 6}));
}

}  // namespace
}  // namespace forerun
