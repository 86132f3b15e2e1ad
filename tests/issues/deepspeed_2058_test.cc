// SPDX-License-Identifier: Apache-2.0
// DeepSpeed 2058: two parameter groups, and only the shards of the first were written back. The
// kind of fault: an update that leaves elements out.
#include <vector>

#include "gtest/gtest.h"
#include "optim/testing/optimizer_rank.h"
#include "parallel/data_parallel/testing/rank_job.h"
#include "parallel/data_parallel/testing/test_parameters.h"

namespace forerun {
namespace {

// Parameters with weight decay and without; every element has a gradient, and every one moves.
TEST(DeepSpeed2058, EveryElementOfBothGroupsMovesInEveryStep) {
  const TestParameters parameters;
  for (bool sharded : {false, true}) {
    for (int ranks : {1, 2, 3}) {
      const absl::Status status = RankJob(ranks).Run([&](const RankContext& context) {
        OptimizerRank::Options options;
        options.sharded = sharded;
        options.optimizer.weight_decay = 0.01;
        OptimizerRank rank(parameters, context, options);
        std::vector<std::vector<double>> before = rank.Read();
        for (int step = 1; step <= 3; ++step) {
          const auto result = rank.Step(step, [](int, const Parameter&, int64_t) { return 0.5f; });
          EXPECT_TRUE(result.ok() && result->updated);
          const std::vector<std::vector<double>> after = rank.Read();
          for (size_t p = 0; p < after.size(); ++p) {
            for (size_t i = 0; i < after[p].size(); ++i) {
              EXPECT_NE(after[p][i], before[p][i])
                  << parameters.order()[p]->name() << " at " << i << " in step " << step;
            }
          }
          before = after;
        }
        return absl::OkStatus();
      });
      EXPECT_TRUE(status.ok()) << status;
    }
  }
}

}  // namespace
}  // namespace forerun
