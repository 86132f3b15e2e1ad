// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/local/run_ranks.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "parallel/comm/conformance_oracle.h"
#include "parallel/comm/process_group.h"
#include "parallel/comm/work.h"

namespace forerun::comm {
namespace {

constexpr int kRanks = 5;

// Runs `odd_one` on rank 2, while the others wait for it in a barrier.
absl::Status RunWithAnOddOne(const std::function<absl::Status(ProcessGroup&)>& odd_one) {
  return RunRanks(kRanks, {}, [&](GroupFactory& factory) {
    const auto group = factory.Create("all", {0, 1, 2, 3, 4});
    if (factory.rank() == 2) return odd_one(*group);
    group->Barrier().Synchronize();
    return absl::OkStatus();
  });
}

TEST(RunRanks, RanksMeetAndAllIsWell) {
  const absl::Status status = RunWithAnOddOne([](ProcessGroup& group) {
    group.Barrier().Synchronize();
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(RunRanks, AnErrorThatARankReturnsEndsAllRanks) {
  const absl::Status status =
      RunWithAnOddOne([](ProcessGroup&) { return absl::NotFoundError("no such file"); });
  EXPECT_EQ(status, absl::NotFoundError("no such file"));
}

TEST(RunRanks, AGroupErrorThatARankThrowsEndsAllRanks) {
  const absl::Status status = RunWithAnOddOne([](ProcessGroup&) -> absl::Status {
    throw GroupError(absl::DataLossError("a cable was pulled"));
  });
  EXPECT_EQ(status, absl::DataLossError("a cable was pulled"));
}

TEST(RunRanks, TheFirstErrorIsReturnedThoughOthersFollow) {
  const absl::Status status = RunRanks(kRanks, {}, [&](GroupFactory& factory) {
    const auto group = factory.Create("all", {0, 1, 2, 3, 4});
    if (factory.rank() == 2) return absl::InternalError("first");
    try {
      group->Barrier().Synchronize();
    } catch (const GroupError& error) {
      EXPECT_STREQ(error.what(), "first");
      return absl::InternalError("a consequence");
    }
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::InternalError("first"));
}

TEST(RunRanks, ARankThatLeavesEarlyDoesNotKeepTheOthersWaiting) {
  const absl::Status status = RunWithAnOddOne([](ProcessGroup&) { return absl::OkStatus(); });
  EXPECT_EQ(status.message(), "group all: Barrier (collective 0) waits for rank 2, which has left");
}

}  // namespace
}  // namespace forerun::comm
