// SPDX-License-Identifier: Apache-2.0
#include "data/sampler.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::ElementsAre;

TEST(Sampler, FollowsTheFormula) {
  EXPECT_THAT(MicrobatchSamples({.consumed_samples = 100,
                                 .microbatch = 2,
                                 .data_parallel_rank = 1,
                                 .data_parallel_size = 4,
                                 .micro_batch_size = 3}),
              ElementsAre(127, 128, 129));  // 100 + (2 * 4 + 1) * 3 + i
}

TEST(Sampler, AStepTakesTheSameSamplesInAnyLayout) {
  constexpr int64_t kGlobalBatch = 24;
  for (const int64_t ranks : {1, 2, 3, 4}) {
    for (const int64_t micro : {1, 2}) {
      std::multiset<int64_t> taken;
      for (int64_t j = 0; j < kGlobalBatch / (ranks * micro); ++j) {
        for (int64_t r = 0; r < ranks; ++r) {
          for (const int64_t sample : MicrobatchSamples({48, j, r, ranks, micro}))
            taken.insert(sample);
        }
      }
      std::multiset<int64_t> expected;
      for (int64_t i = 0; i < kGlobalBatch; ++i) expected.insert(48 + i);
      EXPECT_EQ(taken, expected) << ranks << " ranks, micro batch " << micro;
    }
  }
}

}  // namespace
}  // namespace forerun
