// SPDX-License-Identifier: Apache-2.0
#include "data/blend_order.h"

#include <cmath>
#include <numeric>

#include "gtest/gtest.h"

namespace forerun {
namespace {

// Walks the first `count` samples and checks both invariants of the header at each.
void ExpectSharesRight(const std::vector<int64_t>& shares, int64_t count) {
  const BlendOrder order(shares);
  const double total =
      static_cast<double>(std::accumulate(shares.begin(), shares.end(), int64_t{0}));
  std::vector<int64_t> taken(shares.size(), 0);
  for (int64_t n = 0; n < count; ++n) {
    const BlendOrder::Place place = order.At(n);
    ASSERT_EQ(place.sample, taken[place.dataset]) << "sample " << n;
    ++taken[place.dataset];
    for (size_t i = 0; i < shares.size(); ++i) {
      const double due = static_cast<double>(shares[i]) * static_cast<double>(n + 1) / total;
      ASSERT_LT(std::abs(static_cast<double>(taken[i]) - due), 1.0)
          << "data set " << i << " of " << shares.size() << " after " << n + 1 << " samples";
    }
  }
}

TEST(BlendOrder, SharesAreRightWithinOneSampleAtEveryPrefix) {
  ExpectSharesRight(SharesOfWeights({0.001, 0.999}), 4000);
  ExpectSharesRight({1}, 1100);
  // Where taking whoever lags most fails.
  ExpectSharesRight({1000, 2, 1, 1000, 1, 547, 1, 1000}, 2600);
  ExpectSharesRight({1, 1000, 1, 1, 1}, 2600);
  ExpectSharesRight(SharesOfWeights(std::vector<double>(20, 0.05)), 1100);
  ExpectSharesRight({int64_t{1} << 61, 1, (int64_t{1} << 61) - 1}, 1100);
}

TEST(BlendOrder, WithSizesForSharesAnEpochIsEverySampleOnce) {
  const std::vector<int64_t> sizes = {700, 3, 41, 1};
  const BlendOrder order(sizes);
  std::vector<int64_t> taken(sizes.size(), 0);
  for (int64_t n = 0; n < 745; ++n) ++taken[order.At(n).dataset];
  EXPECT_EQ(taken, sizes);
}

TEST(BlendOrder, APlaceDependsOnNoOtherCall) {
  const std::vector<int64_t> shares = {5, 3, 11};
  const BlendOrder forwards(shares), backwards(shares);
  for (int64_t n = 0; n < 5000; n += 37) forwards.At(n);
  for (int64_t n = 4999; n >= 0; n -= 41) {
    EXPECT_EQ(backwards.At(n).dataset, forwards.At(n).dataset) << n;
    EXPECT_EQ(backwards.At(n).sample, forwards.At(n).sample) << n;
  }
}

TEST(SharesOfWeights, AnyFiniteWeightsHaveThem) {
  EXPECT_EQ(SharesOfWeights({2.0, 6.0}),
            (std::vector<int64_t>{int64_t{1} << 38, int64_t{3} << 38}));
  EXPECT_EQ(SharesOfWeights({1e-300, 1e300})[0], 1);
  EXPECT_EQ(SharesOfWeights({1.7e308, 1.7e308})[1], int64_t{1} << 39);
}

}  // namespace
}  // namespace forerun
