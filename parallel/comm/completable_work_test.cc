// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/completable_work.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace forerun::comm {
namespace {

TEST(CompletableWork, TheFirstCompletionCounts) {
  CompletableWork work(absl::nullopt);
  std::vector<std::string> told;
  const auto tell = [&](const absl::Status& status) { told.emplace_back(status.message()); };
  work.OnDone(tell);
  EXPECT_FALSE(work.Done());
  EXPECT_TRUE(told.empty());
  work.Complete(absl::AbortedError("first"));
  work.Complete(absl::OkStatus());
  work.OnDone(tell);
  EXPECT_TRUE(work.Done());
  EXPECT_EQ(told, (std::vector<std::string>{"first", "first"}));
  try {
    work.Synchronize();
    FAIL() << "no error";
  } catch (const GroupError& error) {
    EXPECT_STREQ(error.what(), "first");
    EXPECT_TRUE(absl::IsAborted(error.status()));
  }
}

TEST(CompletableWork, EveryCallbackRunsOnceAndEveryWaitEndsWhoeverCompletes) {
  for (int round = 0; round < 50; ++round) {
    CompletableWork work(std::chrono::minutes(2));
    std::atomic<int> calls{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        work.OnDone([&](const absl::Status& status) { calls += status.ok() ? 1 : 100; });
        work.Synchronize();
      });
    }
    threads.emplace_back([&] { work.Complete(absl::OkStatus()); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(calls, 3);
  }
}

// Ends itself where it is late, as a group does.
class Impatient final : public CompletableWork {
 public:
  Impatient() : CompletableWork(std::chrono::milliseconds(1)) {}

 private:
  void OnTimeout() override { Complete(absl::DeadlineExceededError("late")); }
};

TEST(CompletableWork, AWaitPastTheDeadlineEndsAsItsOwnerDecides) {
  Impatient work;
  EXPECT_THROW(work.Synchronize(), GroupError);
  EXPECT_TRUE(work.Done());
}

}  // namespace
}  // namespace forerun::comm
