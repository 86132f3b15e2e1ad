// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/local/local_hub.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "gtest/gtest.h"
#include "parallel/comm/conformance_oracle.h"
#include "parallel/comm/local/run_ranks.h"
#include "parallel/comm/process_group.h"

namespace forerun::comm {
namespace {

constexpr int kRanks = 4;
const std::vector<int>& Everybody() {
  static const auto* const everybody = new std::vector<int>{0, 1, 2, 3};
  return *everybody;
}

std::string ErrorOf(const Work& work) {
  try {
    work.Synchronize();
  } catch (const GroupError& error) {
    return error.what();
  }
  return "";
}

TEST(LocalHub, ABarrierEndsAfterEveryRankHasEntered) {
  constexpr int kBarriers = 50;
  std::vector<std::atomic<int>> entered(kBarriers);
  const absl::Status status = RunRanks(kRanks, {}, [&](GroupFactory& factory) {
    const auto group = factory.Create("all", Everybody());
    for (std::atomic<int>& count : entered) {
      ++count;
      group->Barrier().Synchronize();
      EXPECT_EQ(count, kRanks);
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(LocalHub, AGroupOfOneNeedsNoProgressThread) {
  LocalHub::Options options;
  options.inline_bytes = 0;
  LocalHub hub(1, options);
  const auto factory = hub.Join(0);
  const auto group = factory->Create("self", {0});
  const Tensor output = Zeros<float>(1000);
  EXPECT_TRUE(group->AllGather(TensorOf(ValuesOf<float>(1, 0, 1000)), output).Done());
  ExpectValues(ValuesOf<float>(1, 0, 1000), output);
}

// One thread plays both ranks: issuing never blocks.
class TwoRanks : public testing::Test {
 protected:
  LocalHub hub_{2, {}};
  std::unique_ptr<GroupFactory> factories_[2] = {hub_.Join(0), hub_.Join(1)};
  std::unique_ptr<ProcessGroup> first_ = factories_[0]->Create("pair", {0, 1});
  std::unique_ptr<ProcessGroup> second_ = factories_[1]->Create("pair", {0, 1});
};

TEST_F(TwoRanks, WhatWaitsForARankThatLeavesFails) {
  const Work work = first_->AllReduce(Zeros<float>(3), ReduceOp::kSum);
  second_.reset();
  factories_[1].reset();
  EXPECT_EQ(
      ErrorOf(work),
      "group pair: AllReduce of 3 fp32 (sum) (collective 0) waits for rank 1, which has left");
}

TEST_F(TwoRanks, WhatComesToWaitForARankThatHasLeftFails) {
  second_.reset();
  factories_[1].reset();
  EXPECT_TRUE(hub_.status().ok());
  EXPECT_EQ(ErrorOf(first_->Recv(Zeros<float>(3), 1)),
            "group pair: rank 0's Recv of 3 fp32 from rank 1 waits for rank 1, which has left");
}

TEST_F(TwoRanks, WhatARankSentBeforeItLeftCanBeReceived) {
  static_cast<void>(second_->Send(TensorOf(ValuesOf<float>(1, 1, 9)), 0));
  const Work barrier = second_->Barrier();
  second_.reset();
  factories_[1].reset();
  const Tensor received = Zeros<float>(9);
  first_->Recv(received, 1).Synchronize();
  first_->Barrier().Synchronize();
  barrier.Synchronize();
  ExpectValues(ValuesOf<float>(1, 1, 9), received);
}

TEST_F(TwoRanks, CallbacksRunInsideNoCallOfTheOtherRank) {
  struct Calls {
    Mutex mutex;
    CondVar changed;
    int count = 0;
  };
  const auto calls = std::make_shared<Calls>();
  const std::thread::id caller = std::this_thread::get_id();
  const auto callback = [calls, caller](const absl::Status&) {
    EXPECT_NE(std::this_thread::get_id(), caller);
    MutexLock lock(&calls->mutex);
    ++calls->count;
    calls->changed.NotifyAll();
  };
  const Work barrier = first_->Barrier();
  const Work received = first_->Recv(Zeros<float>(3), 1);
  const Work pending = first_->Recv(Zeros<float>(3), 1);
  for (const Work& work : {barrier, received, pending}) work.OnDone(callback);
  {
    MutexLock lock(&calls->mutex);  // which a callback in one of these calls would wait for
    static_cast<void>(second_->Barrier());
    static_cast<void>(second_->Send(Zeros<float>(3), 0));
    second_->Abort(absl::AbortedError("enough"));
    while (calls->count < 3) calls->changed.Wait(&calls->mutex);
  }
}

// Rank 1's progress thread is held up until the test lets it go.
class HeldUp : public testing::Test {
 protected:
  HeldUp() {
    second_->Send(Zeros<float>(0), 0).OnDone([this](const absl::Status&) {
      MutexLock lock(&mutex_);
      entered_ = true;
      changed_.NotifyAll();
      while (!open_) changed_.Wait(&mutex_);
    });
    static_cast<void>(first_->Recv(Zeros<float>(0), 1));
    MutexLock lock(&mutex_);
    while (!entered_) changed_.Wait(&mutex_);
  }

  void LetGo() {
    MutexLock lock(&mutex_);
    open_ = true;
    changed_.NotifyAll();
  }

  static constexpr int64_t kLarge = 30000;  // elements: its tasks go to progress threads

 private:
  Mutex mutex_;
  CondVar changed_;
  bool entered_ = false;
  bool open_ = false;

 protected:
  LocalHub hub_{2, {}};
  std::unique_ptr<GroupFactory> factories_[2] = {hub_.Join(0), hub_.Join(1)};
  std::unique_ptr<ProcessGroup> first_ = factories_[0]->Create("pair", {0, 1});
  std::unique_ptr<ProcessGroup> second_ = factories_[1]->Create("pair", {0, 1});
};

TEST_F(HeldUp, AFailureWithdrawsWhatIsNotYetBeingMovedAndWhatIsBehindIt) {
  const Work works[] = {first_->AllReduce(Zeros<float>(kLarge), ReduceOp::kSum),
                        second_->AllReduce(Zeros<float>(kLarge), ReduceOp::kSum),
                        first_->Barrier(),
                        second_->Barrier(),
                        first_->Broadcast(Zeros<float>(kLarge), 0),
                        second_->Broadcast(Zeros<float>(kLarge), 0)};
  first_->Abort(absl::AbortedError("enough"));
  for (const Work& work : works) EXPECT_EQ(ErrorOf(work), "enough");
  LetGo();
}

TEST_F(HeldUp, CollectivesOfAGroupEndInTheOrderOfTheirIssue) {
  const Tensor sums[] = {TensorOf(ValuesOf<float>(1, 0, kLarge)),
                         TensorOf(ValuesOf<float>(1, 0, kLarge))};
  std::vector<Work> works;
  const auto issue = [&](auto collective) {
    works.push_back(collective(*first_, 0));
    works.push_back(collective(*second_, 1));
  };
  issue([&](ProcessGroup& group, int rank) { return group.AllReduce(sums[rank], ReduceOp::kSum); });
  issue([&](ProcessGroup& group, int) { return group.Barrier(); });
  issue([&](ProcessGroup& group, int rank) { return group.AllReduce(sums[rank], ReduceOp::kSum); });
  issue([&](ProcessGroup& group, int) { return group.Barrier(); });
  for (const Work& work : works) EXPECT_FALSE(work.Done()) << "it overtook the first";
  const auto other = factories_[0]->Create("self", {0});
  EXPECT_TRUE(other->Barrier().Done()) << "another group's order is its own";
  LetGo();
  for (size_t i = works.size(); i-- > 0;) {
    works[i].Synchronize();
    for (size_t before = 0; before < i / 2 * 2; ++before) EXPECT_TRUE(works[before].Done());
  }
  std::vector<float> expected = ValuesOf<float>(1, 0, kLarge);
  for (float& value : expected) value *= 4.0f;
  for (const Tensor& sum : sums) ExpectValues(expected, sum);
}

TEST_F(TwoRanks, AFailureOfOneGroupFailsTheWorld) {
  const auto other = factories_[0]->Create("other", {0, 1});
  const Work pending = other->Barrier();
  second_->Abort(absl::AbortedError("enough"));
  EXPECT_EQ(ErrorOf(pending), "enough");
  EXPECT_EQ(ErrorOf(first_->Barrier()), "enough");
  EXPECT_EQ(hub_.status().message(), "enough");
}

TEST(LocalHub, AWorldThatEndsEndsWhatIsPending) {
  Work pending;
  {
    LocalHub hub(2, {});
    const auto factory = hub.Join(0);
    pending = factory->Create("pair", {0, 1})->Barrier();
    EXPECT_FALSE(pending.Done());
  }
  EXPECT_EQ(ErrorOf(pending), "the ranks' world has ended");
}

}  // namespace
}  // namespace forerun::comm
