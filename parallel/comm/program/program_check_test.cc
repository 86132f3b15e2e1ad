// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/program/program_check.h"

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "gtest/gtest.h"
#include "parallel/comm/fake/fake_group.h"
#include "parallel/comm/group_factory.h"
#include "parallel/comm/program/recording_group.h"

namespace forerun::comm {
namespace {

Tensor Meta(int64_t numel, DType dtype = DType::kF32) {
  return Tensor::Wrap(nullptr, nullptr, Shape{numel}, dtype, Device{DeviceKind::kMeta});
}

Work Sum(ProcessGroup& group, int64_t numel) {
  return group.AllReduce(Meta(numel), ReduceOp::kSum);
}

// What a check says of a job whose ranks each run `body`. "" where all is well.
using Body = std::function<void(GroupFactory&)>;
std::string Check(int ranks, const Body& body) {
  std::deque<Program> programs;
  JobPrograms job;
  for (int rank = 0; rank < ranks; ++rank) {
    FakeGroupFactory fake(rank, ranks, FakeEnd::kWhenWaited);
    RecordingGroupFactory factory(fake);
    body(factory);
    programs.push_back(factory.program());
    const absl::Status added = job.AddRank(programs.back(), programs.back().groups);
    if (!added.ok()) return std::string(added.message());
  }
  return std::string(CheckPrograms(job).message());
}

// The same in one group, "dp", of all ranks.
std::string CheckGroup(int ranks, const std::function<void(ProcessGroup&)>& body) {
  std::vector<int> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
  return Check(ranks, [&](GroupFactory& factory) { body(*factory.Create("dp", all)); });
}

TEST(ProgramCheck, RanksThatIssueAlikeComeToTheEnd) {
  for (int ranks : {1, 2, 5}) {
    EXPECT_EQ(CheckGroup(ranks,
                         [](ProcessGroup& group) {
                           const Work early = Sum(group, 8);
                           group.AllGather(Meta(2), Meta(2 * group.size())).Synchronize();
                           group.Barrier().Synchronize();
                           early.Synchronize();
                           group.Broadcast(Meta(3, DType::kI32), 0).Synchronize();
                         }),
              "");
  }
}

TEST(ProgramCheck, MessagesMeetInWhateverOrderTheirEndsAreIssued) {
  EXPECT_EQ(CheckGroup(3,
                       [](ProcessGroup& group) {  // round a ring, twice
                         const int next = (group.rank() + 1) % 3, last = (group.rank() + 2) % 3;
                         for (int64_t numel : {4, 7}) {
                           const Work sent = group.Send(Meta(numel), next);
                           group.Recv(Meta(numel), last).Synchronize();
                           sent.Synchronize();
                         }
                       }),
            "");
}

TEST(ProgramCheck, SizesThatDifferAreNamed) {
  EXPECT_EQ(CheckGroup(3,
                       [](ProcessGroup& group) {
                         Sum(group, 4).Synchronize();
                         Sum(group, group.rank() == 2 ? 9 : 8).Synchronize();
                       }),
            "group dp: collective 1 of rank 0 is AllReduce of 8 fp32 (sum) where that of rank 2 "
            "is AllReduce of 9 fp32 (sum)");
}

TEST(ProgramCheck, KindsDtypesReductionsAndRootsThatDifferAreNamed) {
  const std::vector<std::function<Work(ProcessGroup&)>> operations = {
      [](ProcessGroup& g) { return g.AllReduce(Meta(8), ReduceOp::kSum); },
      [](ProcessGroup& g) { return g.AllReduce(Meta(8), ReduceOp::kMax); },
      [](ProcessGroup& g) { return g.AllReduce(Meta(8, DType::kBF16), ReduceOp::kSum); },
      [](ProcessGroup& g) { return g.AllGather(Meta(4), Meta(8)); },
      [](ProcessGroup& g) { return g.ReduceScatter(Meta(8), Meta(4), ReduceOp::kSum); },
      [](ProcessGroup& g) { return g.Broadcast(Meta(8), 0); },
      [](ProcessGroup& g) { return g.Broadcast(Meta(8), 1); },
      [](ProcessGroup& g) { return g.Barrier(); }};
  for (size_t a = 0; a < operations.size(); ++a) {
    for (size_t b = 0; b < operations.size(); ++b) {
      const std::string error = CheckGroup(2, [&](ProcessGroup& group) {
        operations[group.rank() == 0 ? a : b](group).Synchronize();
      });
      EXPECT_EQ(error.empty(), a == b) << a << " and " << b << ": " << error;
    }
  }
}

TEST(ProgramCheck, AnOrderThatDiffersIsNamed) {
  EXPECT_EQ(CheckGroup(2,
                       [](ProcessGroup& group) {
                         const bool first = group.rank() == 0;
                         Sum(group, first ? 4 : 8).Synchronize();
                         Sum(group, first ? 8 : 4).Synchronize();
                       }),
            "group dp: collective 0 of rank 1 is AllReduce of 8 fp32 (sum) where that of rank 0 "
            "is AllReduce of 4 fp32 (sum)");
}

TEST(ProgramCheck, ACollectiveThatOneRankLeavesOutIsNamedWhoeverWaits) {
  for (bool wait : {true, false}) {
    const std::string error = CheckGroup(3, [&](ProcessGroup& group) {
      Sum(group, 4).Synchronize();
      if (group.rank() == 1) return;
      const Work work = group.Barrier();
      if (wait) work.Synchronize();
    });
    EXPECT_EQ(error, wait ? "rank 0 waits for Barrier in group dp, which rank 1 never joins"
                          : "rank 0 issues Barrier in group dp, which rank 1 never joins");
  }
}

TEST(ProgramCheck, RanksThatWaitForEachOtherInTwoGroupsAreNamed) {
  const auto body = [](bool at_once) {
    return [at_once](GroupFactory& factory) {
      const auto reduce = factory.Create("reduce", {0, 1});
      const auto gather = factory.Create("gather", {0, 1});
      ProcessGroup& first = factory.rank() == 0 ? *reduce : *gather;
      ProcessGroup& second = factory.rank() == 0 ? *gather : *reduce;
      const Work issued = first.Barrier();
      if (at_once) issued.Synchronize();
      second.Barrier().Synchronize();
      issued.Synchronize();
    };
  };
  EXPECT_EQ(Check(2, body(/*at_once=*/true)),
            "ranks wait for each other for ever: rank 0 waits for Barrier in group reduce, which "
            "rank 1 has not joined; rank 1 waits for Barrier in group gather, which rank 0 has not "
            "joined");
  EXPECT_EQ(Check(2, body(/*at_once=*/false)), "");  // no order of one group binds another
}

TEST(ProgramCheck, ACircleOfThreeIsNamedWithoutWhoOnlyWaitsForIt) {
  EXPECT_EQ(Check(4,
                  [](GroupFactory& factory) {
                    const auto group = factory.Create("pp", {3, 0, 1, 2});
                    if (factory.rank() == 3) {  // stands outside, and waits for rank 0
                      group->Recv(Meta(1), 1).Synchronize();
                      return;
                    }
                    const int rank = factory.rank();
                    group->Recv(Meta(4), 1 + (rank + 2) % 3).Synchronize();
                    group->Send(Meta(4), 1 + (rank + 1) % 3).Synchronize();
                    if (rank == 0) group->Send(Meta(1), 0).Synchronize();
                  }),
            "ranks wait for each other for ever: rank 0 waits for Recv of 4 fp32 from 2 in group "
            "pp, which rank 2 has not joined; rank 2 waits for Recv of 4 fp32 from 1 in group pp, "
            "which rank 1 has not joined; rank 1 waits for Recv of 4 fp32 from 0 in group pp, "
            "which rank 0 has not joined");
}

TEST(ProgramCheck, SendsThatBlockBeforeTheReceiveAreACircle) {
  const std::string error = CheckGroup(2, [](ProcessGroup& group) {
    const int other = 1 - group.rank();
    group.Send(Meta(4), other).Synchronize();
    group.Recv(Meta(4), other).Synchronize();
  });
  EXPECT_EQ(error,
            "ranks wait for each other for ever: rank 0 waits for Send of 4 fp32 to 1 in group dp, "
            "which rank 1 has not joined; rank 1 waits for Send of 4 fp32 to 0 in group dp, which "
            "rank 0 has not joined");
}

TEST(ProgramCheck, AMessageWithoutItsOtherEndIsNamed) {
  EXPECT_EQ(CheckGroup(2,
                       [](ProcessGroup& group) {
                         if (group.rank() == 0) (void)group.Send(Meta(4), 1);
                         Sum(group, 2).Synchronize();
                       }),
            "rank 0 issues Send of 4 fp32 to 1 in group dp, which rank 1 never joins");
}

TEST(ProgramCheck, AMessageOfOtherSizeThanItsReceiverHasRoomForIsNamed) {
  EXPECT_EQ(CheckGroup(2,
                       [](ProcessGroup& group) {
                         for (int64_t numel : {4, 5}) {
                           if (group.rank() == 0) group.Send(Meta(numel), 1).Synchronize();
                           if (group.rank() == 1) group.Recv(Meta(4), 0).Synchronize();
                         }
                       }),
            "group dp: rank 0 issues Send of 5 fp32 to 1 where rank 1 issued Recv of 4 fp32, "
            "message 1 that way");
}

TEST(ProgramCheck, GroupsOfOneNameHaveTheSameMembers) {
  EXPECT_EQ(
      Check(3,
            [](GroupFactory& factory) {
              const int rank = factory.rank();
              factory.Create("tp", rank == 0 ? std::vector<int>{0, 1} : std::vector<int>{1, 2});
            }),
      "group tp has ranks 0,1 on one rank and 1,2 on rank 1");
}

// A pipeline of two stages over pairs that share two programs: ranks 0, 1 send, ranks 2, 3 receive.
TEST(ProgramCheck, RanksShareAProgramAndHaveGroupsOfTheirOwn) {
  const auto program_of = [](int rank, bool faulty) {
    FakeGroupFactory fake(rank, 4, FakeEnd::kWhenWaited);
    RecordingGroupFactory factory(fake);
    const auto pair = factory.Create("pair", {rank / 2 * 2, rank / 2 * 2 + 1});
    const auto pipe = factory.Create("pipe", {rank % 2, rank % 2 + 2});
    if (rank < 2) pipe->Send(Meta(4), 1).Synchronize();
    if (rank >= 2) pipe->Recv(Meta(faulty ? 5 : 4), 0).Synchronize();
    Sum(*pair, rank < 2 ? 6 : 7).Synchronize();
    return factory.program();
  };
  for (bool faulty : {false, true}) {
    const Program first = program_of(0, faulty), second = program_of(2, faulty);
    JobPrograms job;
    for (int rank = 0; rank < 4; ++rank) {
      const int stage = rank / 2, column = rank % 2;
      const std::vector<GroupIdentity> groups = {
          {"pair" + std::to_string(stage), {stage * 2, stage * 2 + 1}},
          {"pipe" + std::to_string(column), {column, column + 2}}};
      ASSERT_TRUE(job.AddRank(stage == 0 ? first : second, groups).ok());
    }
    EXPECT_EQ(job.groups().size(), 4u);
    EXPECT_EQ(std::string(CheckPrograms(job).message()),
              faulty ? "group pipe0: rank 2 issues Recv of 5 fp32 from 0 where rank 0 issued Send "
                       "of 4 fp32, message 0 that way"
                     : "");
  }
}

}  // namespace
}  // namespace forerun::comm
