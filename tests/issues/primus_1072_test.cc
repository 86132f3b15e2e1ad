// SPDX-License-Identifier: Apache-2.0
// Primus 1072: a reducer that counted the contributions of its first steps, of one microbatch, and
// then met four. The kind of fault: expectations that are learned from data instead of taken from
// the tapes.
#include <vector>

#include "gtest/gtest.h"
#include "parallel/data_parallel/testing/rank_job.h"
#include "parallel/data_parallel/testing/test_parameters.h"
#include "tests/support/reducing_rank.h"

namespace forerun {
namespace {

TEST(Primus1072, FourMicrobatchesAfterStepsOfOne) {
  const TestParameters parameters;
  for (bool overlap : {false, true}) {
    const absl::Status status = RankJob(2).Run([&](const RankContext& rank) {
      const auto order = parameters.order();
      ReducingRank self({order.begin(), order.end()}, /*bucket_numel=*/64, rank.op, rank.group,
                        {overlap}, [] { return 0.0; });
      std::vector<int> once;
      for (size_t b = self.plan().buckets().size(); b-- > 0;) once.push_back(static_cast<int>(b));
      const int microbatches[] = {1, 1, 4, 4, 2};
      for (int step = 0; step < 5; ++step) {
        self.Step(step, microbatches[step]);
        EXPECT_EQ(self.WrongSums(step, microbatches[step]), 0) << "step " << step;
        EXPECT_EQ(self.TakeIssueOrder(), once) << "step " << step;
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  }
}

}  // namespace
}  // namespace forerun
