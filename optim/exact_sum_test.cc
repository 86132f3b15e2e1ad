// SPDX-License-Identifier: Apache-2.0
#include "optim/exact_sum.h"

#include <cmath>
#include <limits>
#include <vector>

#include "core/random/random.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

std::vector<float> Normals(int count, double stddev) {
  std::vector<float> values(count);
  FillNormal(RandomKey::Root(11), 0, stddev, absl::MakeSpan(values));
  return values;
}

TEST(ExactSum, RepresentableSumsComeOutExactly) {
  ExactSum sum;
  sum.Add(0x1p200);
  sum.Add(0x1p-200);
  sum.Add(3.0);
  EXPECT_EQ(sum.Value(), 0x1p200);
  ExactSum small;
  small.Add(0x1p-298);
  small.Add(0x1p-298);
  EXPECT_EQ(small.Value(), 0x1p-297);
  ExactSum tenths;
  for (int i = 0; i < 10; ++i) tenths.Add(0.1);
  EXPECT_EQ(tenths.Value(), static_cast<double>(static_cast<long double>(0.1) * 10));
}

TEST(ExactSum, IsRoundedToNearestOnce) {
  // 2^53 + 1 lies half way: to even; one bit far below tips it.
  ExactSum half;
  half.Add(0x1p53);
  half.Add(1.0);
  EXPECT_EQ(half.Value(), 0x1p53);
  half.Add(0x1p-250);
  EXPECT_EQ(half.Value(), 0x1p53 + 2.0);
}

TEST(ExactSum, OrderAndGroupingOfRanksDoNotShow) {
  const std::vector<float> values = Normals(4096, 1e3);
  ExactSum forward;
  for (float v : values) forward.Add(double{v} * v);
  std::vector<ExactSum> ranks(5);
  for (size_t i = values.size(); i-- > 0;) ranks[i % 5].Add(double{values[i]} * values[i]);
  for (int r = 1; r < 5; ++r) {
    for (size_t w = 0; w < ranks[0].words().size(); ++w) ranks[0].words()[w] += ranks[r].words()[w];
  }
  EXPECT_EQ(ranks[0].Value(), forward.Value());
}

TEST(ExactSum, NotFiniteValuesShowWhereverTheyAreAdded) {
  for (double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    ExactSum sum;
    sum.Add(1.0);
    sum.Add(bad);
    EXPECT_FALSE(std::isfinite(sum.Value()));
  }
}

TEST(AddSquares, AnyCutAtBlockBoundariesGivesTheSameBits) {
  const std::vector<float> values = Normals(1000, 0.3);
  ExactSum whole;
  AddSquares(values, whole);
  for (size_t cut : {64u, 128u, 576u, 960u}) {
    ExactSum parts;
    AddSquares(absl::MakeConstSpan(values).subspan(cut), parts);
    AddSquares(absl::MakeConstSpan(values).subspan(0, cut), parts);
    EXPECT_EQ(parts.Value(), whole.Value()) << cut;
  }
  long double plain = 0;
  for (float v : values) plain += static_cast<long double>(v) * v;
  EXPECT_NEAR(whole.Value(), static_cast<double>(plain), 1e-12 * whole.Value());
}

}  // namespace
}  // namespace forerun
