// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/testing/rank_job.h"

#include <numeric>

#include "parallel/comm/local/run_ranks.h"

namespace forerun {

RankJob::RankJob(int ranks, const comm::LocalHub::Options& hub) : hub_(hub) {
  for (int rank = 0; rank < ranks; ++rank) {
    devices_.push_back(std::make_unique<TestDevice>(DeviceKind::kCpu));
  }
}

absl::Status RankJob::Run(const std::function<absl::Status(const RankContext&)>& rank_main) {
  std::vector<int> members(devices_.size());
  std::iota(members.begin(), members.end(), 0);
  const int ranks = static_cast<int>(members.size());
  return comm::RunRanks(ranks, {hub_, 1}, [&](comm::GroupFactory& factory) {
    const auto group = factory.Create("dp", members);
    return rank_main({factory.rank(), devices_[factory.rank()]->op(), factory, *group});
  });
}

}  // namespace forerun
