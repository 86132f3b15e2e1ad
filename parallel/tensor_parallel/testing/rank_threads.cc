// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/testing/rank_threads.h"

#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "parallel/comm/fake/fake_group.h"
#include "parallel/comm/group_factory.h"
#include "parallel/comm/local/run_ranks.h"

namespace forerun {
namespace {

std::vector<int> AllRanks(int size) {
  std::vector<int> members(size);
  std::iota(members.begin(), members.end(), 0);
  return members;
}

}  // namespace

void ForEachRank(int ranks, absl::FunctionRef<void(comm::ProcessGroup&)> body) {
  const absl::Status status = comm::RunRanks(ranks, {}, [&](comm::GroupFactory& factory) {
    const auto group = factory.Create("tp", AllRanks(ranks));
    body(*group);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

std::shared_ptr<comm::ProcessGroup> FakeGroup(int rank, int size) {
  return comm::FakeGroupFactory(rank, size).Create("tp", AllRanks(size));
}

}  // namespace forerun
