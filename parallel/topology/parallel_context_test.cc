// SPDX-License-Identifier: Apache-2.0
#include "parallel/topology/parallel_context.h"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/device/device.h"
#include "core/tensor/tensor.h"
#include "gtest/gtest.h"
#include "parallel/comm/fake/fake_group.h"
#include "parallel/comm/link/link.h"
#include "parallel/comm/link/link_group.h"
#include "parallel/comm/link/wall_clock.h"
#include "parallel/comm/local/run_ranks.h"

namespace forerun {
namespace {

using comm::ProcessGroup;

struct Named {
  std::string name;
  ProcessGroup& group;
  std::vector<int> members;  // that the grid wants
};

std::vector<Named> GroupsOf(const ParallelContext& context) {
  const Grid& grid = context.grid();
  const int rank = context.rank();
  std::vector<int> all;
  for (int other = 0; other < grid.world_size(); ++other) all.push_back(other);
  const bool outer = context.first_stage() || context.last_stage();
  return {{"world", context.world(), all},
          {"tensor", context.tensor(), grid.Members(Axis::kTensor, rank)},
          {"pipeline", context.pipeline(), grid.Members(Axis::kPipeline, rank)},
          {"grad_reduce", context.grad_reduce(), grid.Members(Axis::kData, rank)},
          {"param_gather", context.param_gather(), grid.Members(Axis::kData, rank)},
          {"embedding", context.embedding(),
           outer ? grid.EmbeddingMembers(rank) : std::vector<int>{rank}},
          {"self", context.self(), {rank}}};
}

// All of int64, on the host.
struct Ints {
  explicit Ints(std::vector<int64_t> initial) : values(std::move(initial)) {}
  Tensor tensor() {
    return Tensor::Wrap(nullptr, values.data(), {static_cast<int64_t>(values.size())}, DType::kI64);
  }
  std::vector<int64_t> values;
};

// The world ranks of a group, in its order, as its members tell each other.
std::vector<int> Gathered(ProcessGroup& group, int world_rank) {
  Ints own({world_rank}), all(std::vector<int64_t>(group.size(), -1));
  group.AllGather(own.tensor(), all.tensor()).Synchronize();
  return std::vector<int>(all.values.begin(), all.values.end());
}

absl::Status CheckGroups(comm::GroupFactory& factory, int tp, int pp) {
  const ParallelContext context(*Grid::Create(factory.world_size(), tp, pp), factory);
  for (const Named& named : GroupsOf(context)) {
    const std::vector<int> members = Gathered(named.group, context.rank());
    if (members != named.members || members[named.group.rank()] != context.rank()) {
      return absl::InternalError(
          absl::StrCat("rank ", context.rank(), ": group ", named.name, " has other members"));
    }
  }
  return absl::OkStatus();
}

TEST(ParallelContext, EachGroupConnectsTheRanksThatTheGridNames) {
  struct Layout {
    int world, tp, pp;
  };
  for (const Layout& layout :
       {Layout{1, 1, 1}, Layout{8, 2, 2}, Layout{6, 1, 3}, Layout{8, 8, 1}}) {
    const absl::Status status = comm::RunRanks(layout.world, {}, [&](comm::GroupFactory& factory) {
      return CheckGroups(factory, layout.tp, layout.pp);
    });
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(ParallelContext, GroupsOverALinkAreTheSameAndAllTakeTheirTurnsOnIt) {
  comm::WallClock clock;
  const absl::Status status = comm::RunRanks(8, {}, [&](comm::GroupFactory& factory) {
    const auto link = std::make_shared<comm::Link>(comm::Link::Options{}, clock);
    comm::LinkGroupFactory linked(factory, link);
    FR_RETURN_IF_ERROR(CheckGroups(linked, /*tp=*/2, /*pp=*/2));
    std::set<std::string> carried;  // all but the group of one
    for (const comm::LinkRecord& record : link->TakeRecords()) carried.insert(record.group);
    EXPECT_EQ(carried.size(), 6u);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

// One rank reduces first and the other gathers first, and each waits before it goes on.
TEST(ParallelContext, ReductionsAndGathersNeverWaitForEachOther) {
  const absl::Status status = comm::RunRanks(2, {}, [&](comm::GroupFactory& factory) {
    const ParallelContext context(*Grid::Create(2, 1, 1), factory);
    Ints reduced({1}), own({2}), all({0, 0});
    comm::Work reduce;
    if (context.rank() == 0) {
      reduce = context.grad_reduce().AllReduce(reduced.tensor(), comm::ReduceOp::kSum);
    }
    context.param_gather().AllGather(own.tensor(), all.tensor()).Synchronize();
    if (context.rank() == 1) {
      reduce = context.grad_reduce().AllReduce(reduced.tensor(), comm::ReduceOp::kSum);
    }
    reduce.Synchronize();
    return reduced.values[0] == 2 && all.values == std::vector<int64_t>{2, 2}
               ? absl::OkStatus()
               : absl::InternalError("a wrong sum");
  });
  EXPECT_TRUE(status.ok()) << status;
}

// Rank 40 of 64 with tp 2 and pp 4 is tp 0, dp 4, pp 2.
TEST(ParallelContext, OneRankOfAnyWorldStandsAloneOverFakeGroups) {
  comm::FakeGroupFactory factory(40, 64);
  const ParallelContext context(*Grid::Create(64, 2, 4), factory);
  EXPECT_EQ(context.at(), (Coordinates{0, 4, 2}));
  EXPECT_FALSE(context.first_stage() || context.last_stage());
  for (const Named& named : GroupsOf(context)) {
    EXPECT_EQ(named.group.size(), static_cast<int>(named.members.size())) << named.name;
    EXPECT_EQ(named.members[named.group.rank()], 40) << named.name;
  }
  const Tensor meta = Tensor::Wrap(nullptr, nullptr, {16}, DType::kF32, Device{DeviceKind::kMeta});
  EXPECT_TRUE(context.tensor().AllReduce(meta, comm::ReduceOp::kSum).Done());
  EXPECT_EQ(context.tensor().name(), "tp40");
}

TEST(ParallelContext, GroupsAreNamedByTheirFirstRankAndNoTwoAlike) {
  std::set<std::string> names;  // with members that differ: one name, one group
  for (int rank = 0; rank < 8; ++rank) {
    comm::FakeGroupFactory factory(rank, 8);
    const ParallelContext context(*Grid::Create(8, 2, 2), factory);
    for (const Named& named : GroupsOf(context)) {
      if (named.group.rank() == 0) {
        EXPECT_TRUE(names.insert(named.group.name()).second) << named.group.name();
        EXPECT_EQ(named.group.name().substr(named.group.name().find_last_not_of("0123456789") + 1),
                  absl::StrCat(rank));
      }
    }
  }
}

}  // namespace
}  // namespace forerun
