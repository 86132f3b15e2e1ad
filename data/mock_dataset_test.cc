// SPDX-License-Identifier: Apache-2.0
#include "data/mock_dataset.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

std::vector<int32_t> Sample(const MockDataset& dataset, int64_t index) {
  std::vector<int32_t> tokens(static_cast<size_t>(dataset.seq_length()) + 1);
  EXPECT_TRUE(dataset.Get(index, absl::MakeSpan(tokens)).ok());
  return tokens;
}

TEST(MockDataset, SamplesAreAPureFunctionOfSeedAndIndex) {
  const MockDataset a(10, 32, 100, 7);
  const MockDataset again(99, 32, 100, 7);
  const MockDataset other(10, 32, 100, 8);
  const std::vector<int32_t> third = Sample(a, 3);
  EXPECT_EQ(Sample(again, 3), third);
  EXPECT_NE(Sample(a, 4), third);
  EXPECT_NE(Sample(a, 13), third);
  EXPECT_NE(Sample(other, 3), third);
}

TEST(MockDataset, TokensLieInTheVocabularyWhateverItsSize) {
  for (const int64_t vocab : {1, 2, 3, 257, 50257, INT32_MAX}) {
    for (const int32_t token : Sample(MockDataset(1, 64, vocab, 1), 0)) {
      EXPECT_GE(token, 0);
      EXPECT_LT(token, vocab);
    }
  }
}

TEST(MockDataset, ATokenIsMostlyFollowedByItsOneSuccessor) {
  constexpr int64_t kVocab = 20;
  const MockDataset dataset(1, 127, kVocab, 3);
  std::map<int32_t, std::map<int32_t, int>> followers;
  for (int64_t i = 0; i < 50; ++i) {
    const std::vector<int32_t> tokens = Sample(dataset, i);
    for (size_t t = 0; t + 1 < tokens.size(); ++t) ++followers[tokens[t]][tokens[t + 1]];
  }
  EXPECT_EQ(followers.size(), static_cast<size_t>(kVocab));
  for (const auto& [token, counts] : followers) {
    int total = 0;
    int most = 0;
    for (const auto& [next, count] : counts) {
      total += count;
      most = std::max(most, count);
    }
    // Expected: 3/4 + 1/80; about 300 draws a token have a standard deviation of 0.025.
    EXPECT_NEAR(static_cast<double>(most) / total, 0.7625, 0.125) << token;
  }
}

}  // namespace
}  // namespace forerun
