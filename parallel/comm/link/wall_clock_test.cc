// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/link/wall_clock.h"

#include <chrono>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "gtest/gtest.h"

namespace forerun::comm {
namespace {

using std::chrono::milliseconds;

// What callbacks did, and a wait for it.
class Calls {
 public:
  void Add(int number, Clock::Time at) {
    MutexLock lock(&mutex_);
    numbers_.push_back(number);
    times_.push_back(at);
    changed_.NotifyAll();
  }
  std::vector<int> Await(size_t count) {
    MutexLock lock(&mutex_);
    while (numbers_.size() < count) changed_.Wait(&mutex_);
    return numbers_;
  }
  std::vector<Clock::Time> times() {
    MutexLock lock(&mutex_);
    return times_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<int> numbers_ ABSL_GUARDED_BY(mutex_);
  std::vector<Clock::Time> times_ ABSL_GUARDED_BY(mutex_);
};

TEST(WallClock, CallsInOrderOfTimeAndNeverEarly) {
  Calls calls;
  WallClock clock;
  const Clock::Time begin = clock.Now();
  const milliseconds delays[] = {milliseconds(9), milliseconds(3), milliseconds(6)};
  for (int i = 0; i < 3; ++i) {
    clock.CallAt(begin + delays[i], [&, i] { calls.Add(i, clock.Now()); });
  }
  EXPECT_EQ(calls.Await(3), (std::vector<int>{1, 2, 0}));
  const std::vector<Clock::Time> times = calls.times();
  EXPECT_GE(times[0], begin + milliseconds(3));
  EXPECT_GE(times[1], begin + milliseconds(6));
  EXPECT_GE(times[2], begin + milliseconds(9));
}

TEST(WallClock, CallsOfOneTimeComeInTheOrderGivenAndNotInTheCaller) {
  Calls calls;
  WallClock clock;
  const std::thread::id caller = std::this_thread::get_id();
  for (int i = 0; i < 20; ++i) {
    clock.CallAt(Clock::Time(0), [&, i] {
      EXPECT_NE(std::this_thread::get_id(), caller);
      calls.Add(i, clock.Now());
    });
  }
  const std::vector<int> numbers = calls.Await(20);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(numbers[i], i);
}

TEST(WallClock, ACallbackMayAskForAnother) {
  Calls calls;
  WallClock clock;
  clock.CallAt(clock.Now(), [&] {
    clock.CallAt(clock.Now() + milliseconds(1), [&] { calls.Add(1, clock.Now()); });
  });
  EXPECT_EQ(calls.Await(1), std::vector<int>{1});
}

TEST(WallClock, WhatIsNotDueWhenItEndsIsCalledThen) {
  Calls calls;
  {
    WallClock clock;
    const Clock::Time hour = clock.Now() + std::chrono::hours(1);
    // Called when `hour` is gone.
    clock.CallAt(2 * hour, [&calls, hour] { calls.Add(2, hour); });
    clock.CallAt(hour, [&calls, &clock, hour] {
      calls.Add(1, hour);
      clock.CallAt(3 * hour, [&calls, hour] { calls.Add(3, hour); });
    });
  }
  EXPECT_EQ(calls.Await(3), (std::vector<int>{1, 2, 3}));
}

}  // namespace
}  // namespace forerun::comm
