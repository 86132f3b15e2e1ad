// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/link/link_group.h"

#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "gtest/gtest.h"
#include "parallel/comm/completable_work.h"
#include "parallel/comm/fake/fake_group.h"
#include "parallel/comm/link/virtual_clock.h"
#include "parallel/comm/program/recording_group.h"

namespace forerun::comm {
namespace {

Clock::Time Ns(int64_t count) { return Clock::Time(count); }

Tensor Meta(int64_t bytes) {
  return Tensor::Wrap(nullptr, nullptr, Shape{bytes}, DType::kU8, Device{DeviceKind::kMeta});
}

// Rank 0 of 4 over fake groups; a link of 100 ns and one byte a nanosecond, in virtual time.
class LinkGroup : public testing::Test {
 protected:
  std::shared_ptr<Link> MakeLink() {
    return std::make_shared<Link>(Link::Options{Ns(100), 1e9}, clock_);
  }
  std::unique_ptr<ProcessGroup> Group(const std::string& name, std::shared_ptr<Link> link) {
    return LinkGroupFactory(recorded_, std::move(link)).Create(name, {0, 1, 2, 3});
  }
  // 400 bytes over four ranks: 300 on the wire.
  static Work Gather(ProcessGroup& group) { return group.AllGather(Meta(100), Meta(400)); }

  VirtualClock clock_;
  FakeGroupFactory fake_{0, 4};
  RecordingGroupFactory recorded_{fake_};
  const std::shared_ptr<Link> link_ = MakeLink();
};

TEST_F(LinkGroup, AWaitMovesVirtualTimeToTheOperationsEnd) {
  const auto group = Group("dp", link_);
  const Work work = Gather(*group);
  EXPECT_FALSE(work.Done());
  EXPECT_EQ(clock_.Now(), Ns(0));
  work.Synchronize();
  EXPECT_TRUE(work.Done());
  EXPECT_EQ(clock_.Now(), Ns(400));
}

TEST_F(LinkGroup, EachKindTakesLatencyAndItsWireBytes) {
  const auto group = Group("dp", link_);
  InlineStream stream(Device{});
  const auto time_of = [&](const Work& work) {
    const Clock::Time begin = clock_.Now();
    work.Wait(stream);
    return clock_.Now() - begin;
  };
  const Tensor floats =
      Tensor::Wrap(nullptr, nullptr, Shape{100}, DType::kF32, Device{DeviceKind::kMeta});
  const Tensor part =
      Tensor::Wrap(nullptr, nullptr, Shape{25}, DType::kF32, Device{DeviceKind::kMeta});
  EXPECT_EQ(time_of(group->AllReduce(floats, ReduceOp::kSum)), Ns(700));
  EXPECT_EQ(time_of(group->AllGather(part, floats)), Ns(400));
  EXPECT_EQ(time_of(group->ReduceScatter(floats, part, ReduceOp::kSum)), Ns(400));
  EXPECT_EQ(time_of(group->Broadcast(floats, 2)), Ns(500));
  EXPECT_EQ(time_of(group->Send(floats, 1)), Ns(500));
  EXPECT_EQ(time_of(group->Recv(floats, 3)), Ns(500));
  EXPECT_EQ(time_of(group->Barrier()), Ns(100));
  EXPECT_EQ(recorded_.program().operation_count(), 7);
}

TEST_F(LinkGroup, OperationsOfGroupsThatShareALinkFollowEachOther) {
  const auto dp = Group("dp", link_);
  const auto pp = Group("pp", link_);
  const Work first = Gather(*dp);
  const Work second = pp->Send(Meta(50), 1);
  clock_.AdvanceTo(Ns(30));
  const Work third = Gather(*dp);
  third.Synchronize();
  EXPECT_TRUE(first.Done());
  EXPECT_TRUE(second.Done());
  struct Expected {
    const char* group;
    OpKind kind;
    int64_t bytes, issued, started, ended;
  };
  const Expected expected[] = {{"dp", OpKind::kAllGather, 300, 0, 0, 400},
                               {"pp", OpKind::kSend, 50, 0, 400, 550},
                               {"dp", OpKind::kAllGather, 300, 30, 550, 950}};
  const std::vector<LinkRecord> records = link_->TakeRecords();
  ASSERT_EQ(records.size(), std::size(expected));
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].group, expected[i].group) << i;
    EXPECT_EQ(records[i].kind, expected[i].kind) << i;
    EXPECT_EQ(records[i].bytes, expected[i].bytes) << i;
    EXPECT_EQ(records[i].issued, Ns(expected[i].issued)) << i;
    EXPECT_EQ(records[i].started, Ns(expected[i].started)) << i;
    EXPECT_EQ(records[i].ended, Ns(expected[i].ended)) << i;
  }
  EXPECT_TRUE(link_->TakeRecords().empty());
}

TEST_F(LinkGroup, OperationsOnSeparateLinksOverlap) {
  const auto dp = Group("dp", link_);
  const auto pp = Group("pp", MakeLink());
  const Work gather = Gather(*dp);
  const Work send = pp->Send(Meta(50), 1);
  send.Synchronize();
  EXPECT_EQ(clock_.Now(), Ns(150));
  gather.Synchronize();
  EXPECT_EQ(clock_.Now(), Ns(400));
}

TEST_F(LinkGroup, AComputationHidesWhatItOverlaps) {
  const auto group = Group("dp", link_);
  const Work first = Gather(*group);
  const Work second = Gather(*group);
  first.Synchronize();
  clock_.AdvanceBy(Ns(250));
  const Clock::Time begin = clock_.Now();
  second.Synchronize();
  EXPECT_EQ(clock_.Now() - begin, Ns(150));
}

TEST_F(LinkGroup, ACallbackRunsAtTheEndAndItsOperationStartsThen) {
  const auto group = Group("dp", link_);
  std::vector<Clock::Time> ends;
  std::function<void(const absl::Status&)> next = [&](const absl::Status& status) {
    EXPECT_TRUE(status.ok());
    ends.push_back(clock_.Now());
    if (ends.size() < 3) Gather(*group).OnDone(next);
  };
  Gather(*group).OnDone(next);
  clock_.AdvanceToTheEnd();
  EXPECT_EQ(ends, (std::vector<Clock::Time>{Ns(400), Ns(800), Ns(1200)}));
}

TEST_F(LinkGroup, TheFactoryChoosesALinkForEachGroupAndAGroupOfOneHasNone) {
  const std::shared_ptr<Link> other = MakeLink();
  LinkGroupFactory factory(fake_, [&](const std::string& name, absl::Span<const int> members) {
    EXPECT_GT(members.size(), 1u);
    return name == "tp" ? nullptr : name == "dp" ? link_ : other;
  });
  EXPECT_EQ(factory.rank(), 0);
  EXPECT_EQ(factory.world_size(), 4);
  const auto tp = factory.Create("tp", {0, 1});
  const auto self = factory.Create("self", {0});
  const auto dp = factory.Create("dp", {2, 0});
  EXPECT_EQ(dp->name(), "dp");
  EXPECT_EQ(dp->rank(), 1);
  EXPECT_EQ(dp->size(), 2);
  EXPECT_TRUE(tp->Barrier().Done());
  EXPECT_TRUE(self->Barrier().Done());
  EXPECT_FALSE(dp->Barrier().Done());
  clock_.AdvanceToTheEnd();
  EXPECT_EQ(link_->TakeRecords().size(), 1u);
  EXPECT_TRUE(other->TakeRecords().empty());
}

TEST_F(LinkGroup, AnAbortFailsWhatIsOnTheLinkAtItsTimeAndWhatComesLaterAtOnce) {
  const auto group = Group("dp", link_);
  const Work work = Gather(*group);
  group->Abort(absl::AbortedError("enough"));
  EXPECT_THROW(work.Synchronize(), GroupError);
  EXPECT_EQ(clock_.Now(), Ns(400));
  EXPECT_TRUE(Gather(*group).Done());
  EXPECT_TRUE(link_->TakeRecords().empty());
}

// A group whose operations end when the test says so.
class LateGroup final : public ProcessGroup {
 public:
  explicit LateGroup(std::vector<std::shared_ptr<CompletableWork>>* works) : works_(works) {}
  const std::string& name() const override { return name_; }
  int rank() const override { return 0; }
  int size() const override { return 4; }
  Arithmetic arithmetic() const override { return Arithmetic::kFast; }
  Work AllReduce(const Tensor&, ReduceOp) override { return Add(); }
  Work AllGather(const Tensor&, const Tensor&) override { return Add(); }
  Work ReduceScatter(const Tensor&, const Tensor&, ReduceOp) override { return Add(); }
  Work Broadcast(const Tensor&, int) override { return Add(); }
  Work Send(const Tensor&, int) override { return Add(); }
  Work Recv(const Tensor&, int) override { return Add(); }
  Work Barrier() override { return Add(); }
  void Abort(const absl::Status&) override {}

 private:
  Work Add() {
    works_->push_back(std::make_shared<CompletableWork>(absl::nullopt));
    return Work(works_->back());
  }

  const std::string name_ = "late";
  std::vector<std::shared_ptr<CompletableWork>>* const works_;
};

class LateFactory final : public GroupFactory {
 public:
  explicit LateFactory(std::vector<std::shared_ptr<CompletableWork>>* works) : works_(works) {}
  int rank() const override { return 0; }
  int world_size() const override { return 4; }
  std::unique_ptr<ProcessGroup> Create(const std::string&, absl::Span<const int>) override {
    return std::make_unique<LateGroup>(works_);
  }

 private:
  std::vector<std::shared_ptr<CompletableWork>>* const works_;
};

class LinkOverLateGroup : public LinkGroup {
 protected:
  void EndInnerAt(size_t operation, Clock::Time time, absl::Status status = absl::OkStatus()) {
    clock_.CallAt(time, [this, operation, status] { inner_works_[operation]->Complete(status); });
  }

  std::vector<std::shared_ptr<CompletableWork>> inner_works_;
  LateFactory factory_{&inner_works_};
  const std::unique_ptr<ProcessGroup> group_ =
      LinkGroupFactory(factory_, link_).Create("late", {0, 1, 2, 3});
};

TEST_F(LinkOverLateGroup, NoOperationEndsBeforeTheInnerOne) {
  const Work late = Gather(*group_);
  const Work prompt = Gather(*group_);
  EndInnerAt(0, Ns(5000));
  EndInnerAt(1, Ns(10));
  prompt.Synchronize();
  EXPECT_EQ(clock_.Now(), Ns(800));
  EXPECT_FALSE(late.Done());
  late.Synchronize();
  EXPECT_EQ(clock_.Now(), Ns(5000));
}

TEST_F(LinkOverLateGroup, AReceiveTakesItsTimeFromWhenItsMessageComes) {
  const Work received = group_->Recv(Meta(50), 1);
  const Work gathered = Gather(*group_);
  EndInnerAt(1, Ns(0));
  EndInnerAt(0, Ns(1000));
  gathered.Synchronize();
  EXPECT_EQ(clock_.Now(), Ns(400));  // the early receive did not occupy the link
  received.Synchronize();
  EXPECT_EQ(clock_.Now(), Ns(1150));
  const LinkRecord record = link_->TakeRecords().back();
  EXPECT_EQ(record.kind, OpKind::kRecv);
  EXPECT_EQ(record.issued, Ns(0));
  EXPECT_EQ(record.started, Ns(1000));
}

TEST_F(LinkOverLateGroup, AnInnerFailureEndsTheOperationAtOnce) {
  const Work work = Gather(*group_);
  EndInnerAt(0, Ns(70), absl::UnavailableError("a rank is gone"));
  try {
    work.Synchronize();
    FAIL() << "no error";
  } catch (const GroupError& error) {
    EXPECT_STREQ(error.what(), "a rank is gone");
  }
  EXPECT_EQ(clock_.Now(), Ns(70));
}

}  // namespace
}  // namespace forerun::comm
