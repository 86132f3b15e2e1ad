// SPDX-License-Identifier: Apache-2.0
#include "core/random/random.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace forerun {
namespace {

// Known answer of Philox4x32-10 for key 0 and counter 0, from the authors' test vectors.
TEST(Philox, MatchesThePublishedKnownAnswer) {
  const std::array<uint32_t, 4> expected = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
  EXPECT_EQ(Philox(0, 0), expected);
}

TEST(RandomKey, FoldsAreDistinctAndOrderSensitive) {
  const RandomKey root = RandomKey::Root(1);
  EXPECT_NE(root.Fold("a").Fold("b"), root.Fold("b").Fold("a"));
  EXPECT_NE(root.Fold("a").Fold(1), root.Fold("a").Fold(2));
  EXPECT_NE(RandomKey::Root(1), RandomKey::Root(2));
}

TEST(FillNormal, AnyRangeGivesTheSameValuesAsTheWhole) {
  const RandomKey key = RandomKey::Root(7).Fold("weight");
  std::vector<float> whole(1000);
  FillNormal(key, 0, 0.02, absl::MakeSpan(whole));
  for (uint64_t begin : {0, 1, 3, 501}) {
    std::vector<float> part(17);
    FillNormal(key, begin, 0.02, absl::MakeSpan(part));
    EXPECT_EQ(part, std::vector<float>(whole.begin() + begin, whole.begin() + begin + 17));
  }
}

TEST(FillNormal, HasTheMomentsOfANormal) {
  std::vector<float> values(100000);
  FillNormal(RandomKey::Root(3), 0, 2.0, absl::MakeSpan(values));
  double sum = 0, squares = 0, fourths = 0;
  for (double v : values) sum += v, squares += v * v, fourths += v * v * v * v;
  const double n = static_cast<double>(values.size());
  EXPECT_NEAR(sum / n, 0.0, 0.03);
  EXPECT_NEAR(squares / n, 4.0, 0.1);
  EXPECT_NEAR(fourths / n, 3.0 * 16.0, 2.0);
}

TEST(PermutationAt, IsAPermutationForAnyCount) {
  for (uint64_t count : {1u, 2u, 3u, 16u, 17u, 1000u}) {
    std::vector<int> hits(count, 0);
    for (uint64_t i = 0; i < count; ++i) ++hits[PermutationAt(RandomKey::Root(5), count, i)];
    EXPECT_EQ(hits, std::vector<int>(count, 1)) << count;
  }
}

TEST(PermutationAt, DependsOnTheKey) {
  int same = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    same += PermutationAt(RandomKey::Root(1), 1000, i) == PermutationAt(RandomKey::Root(2), 1000, i);
  }
  EXPECT_LT(same, 20);
}

}  // namespace
}  // namespace forerun
