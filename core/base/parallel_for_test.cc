// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel_for.h"

#include <vector>

#include "gtest/gtest.h"

namespace forerun {
namespace {

TEST(ParallelFor, VisitsEveryIndexOnceForAnyCountAndGrain) {
  SetLoopThreads(3);
  for (int64_t count : {0, 1, 5, 64, 65, 1000}) {
    for (int64_t grain : {1, 7, 64, 2000}) {
      std::vector<int> visits(count, 0);
      ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
        EXPECT_EQ(begin % grain, 0);
        for (int64_t i = begin; i < end; ++i) ++visits[i];
      });
      EXPECT_EQ(visits, std::vector<int>(count, 1)) << count << " by " << grain;
    }
  }
}

}  // namespace
}  // namespace forerun
