// SPDX-License-Identifier: Apache-2.0
#include "bench/one_ahead_chain.h"

#include <vector>

#include "gtest/gtest.h"

namespace forerun {
namespace {

using Buckets = std::vector<int>;

TEST(OneAheadChain, AWaitStartsTheSuccessorInItsOrder) {
  OneAheadChain chain({2, 0, 1});
  chain.OnStep();
  EXPECT_EQ(chain.OnWanted(2), Buckets{2});
  EXPECT_EQ(chain.OnWaited(2), Buckets{0});
  EXPECT_EQ(chain.OnWanted(0), Buckets{});
  EXPECT_EQ(chain.OnWaited(0), Buckets{1});
  EXPECT_EQ(chain.OnWaited(1), Buckets{});
}

TEST(OneAheadChain, ABucketIsStartedOnceAStep) {
  OneAheadChain chain({0, 1, 2});
  for (int step = 0; step < 2; ++step) {
    chain.OnStep();
    EXPECT_EQ(chain.OnWanted(1), Buckets{1});
    EXPECT_EQ(chain.OnWaited(1), Buckets{2});
    EXPECT_EQ(chain.OnWanted(0), Buckets{0});
    EXPECT_EQ(chain.OnWaited(0), Buckets{});
    EXPECT_EQ(chain.OnWanted(2), Buckets{});
  }
}

}  // namespace
}  // namespace forerun
