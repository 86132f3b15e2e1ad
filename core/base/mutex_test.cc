// SPDX-License-Identifier: Apache-2.0
#include "core/base/mutex.h"

#include <chrono>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using std::chrono::seconds;

class Counter {
 public:
  void Add(int amount) {
    MutexLock lock(&mutex_);
    value_ += amount;
    changed_.NotifyAll();
  }
  // Waits until the value is `target`; false after `limit`.
  bool WaitFor(int target, CondVar::Clock::duration limit) {
    const CondVar::Clock::time_point deadline = CondVar::Clock::now() + limit;
    MutexLock lock(&mutex_);
    while (value_ != target) {
      if (!changed_.WaitUntil(&mutex_, deadline)) return value_ == target;
    }
    return true;
  }
  void WaitForever(int target) {
    MutexLock lock(&mutex_);
    while (value_ != target) changed_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int value_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(Mutex, NoUpdateIsLost) {
  Counter counter;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&counter] {
      for (int i = 0; i < 500; ++i) counter.Add(1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(counter.WaitFor(2000, seconds(0)));
}

TEST(CondVar, AWaiterWakesAndHoldsTheMutexAgain) {
  Counter there, back;
  std::thread other([&] {
    for (int i = 1; i <= 100; ++i) {
      there.WaitForever(i);
      back.Add(1);
    }
  });
  for (int i = 1; i <= 100; ++i) {
    there.Add(1);
    EXPECT_TRUE(back.WaitFor(i, seconds(60)));
  }
  other.join();
}

TEST(CondVar, WaitUntilGivesUpAtItsDeadline) {
  Counter counter;
  EXPECT_FALSE(counter.WaitFor(1, std::chrono::milliseconds(5)));
  counter.Add(1);
  EXPECT_TRUE(counter.WaitFor(1, std::chrono::milliseconds(5)));
}

}  // namespace
}  // namespace forerun
