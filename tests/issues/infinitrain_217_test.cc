// SPDX-License-Identifier: Apache-2.0
// InfiniTrain 217: parameters were put into buckets in the order of a hash map, another one on
// every rank and in every run. The kind of fault: an order that is not a function of the model.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/gpt.h"
#include "parallel/data_parallel/data_parallel.h"
#include "parallel/tensor_parallel/testing/rank_threads.h"
#include "tests/support/job.h"
#include "trainer/rank_trainer.h"

namespace forerun {
namespace {

TEST(InfiniTrain217, EveryBuildOfAModelPlansTheSame) {
  JobSpec spec = T0Overlapped();
  spec.config.post_sublayer_norms = true;
  const auto group = SelfGroup();
  std::vector<std::unique_ptr<GptChunk>> chunks;  // all alive: at other addresses each
  std::set<std::string> plans;
  for (int build = 0; build < 20; ++build) {
    const RegistrationOrder order(RegistrationOrder::Kind::kShuffled, build % 4);
    chunks.push_back(GptChunk::Create(spec.config, {}, *group, order).value());
    const auto graph = RecordChunkOrder(*chunks.back(), spec.options.seq_length, 1);
    ASSERT_TRUE(graph.ok()) << graph.status();
    const DataParallel::Chunk chunk{chunks.back()->registry().parameters(), *graph};
    plans.insert(
        graph->ToString() +
        PlanBuckets({chunk}, /*data_parallel_size=*/2, spec.options.data_parallel).ToString());
  }
  EXPECT_EQ(plans.size(), 1u);
}

}  // namespace
}  // namespace forerun
