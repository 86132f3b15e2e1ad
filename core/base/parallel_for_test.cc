// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel_for.h"

#include <set>
#include <thread>
#include <vector>

#include "core/base/mutex.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

TEST(ParallelFor, VisitsEveryIndexOnceForAnyCountAndGrain) {
  SetLoopThreads(3);
  for (int64_t count : {0, 1, 5, 64, 65, 1000}) {
    for (int64_t grain : {1, 7, 64, 2000}) {
      std::vector<int> visits(count, 0);
      ParallelFor(count, grain, [&](int64_t begin, int64_t end) {
        EXPECT_EQ(begin % grain, 0);
        for (int64_t i = begin; i < end; ++i) ++visits[i];
      });
      EXPECT_EQ(visits, std::vector<int>(count, 1)) << count << " by " << grain;
    }
  }
}

TEST(ParallelFor, EveryRangeButTheLastIsAMultipleOfTheGrain) {
  SetLoopThreads(4);
  for (int64_t count : {9, 64, 1000}) {
    ParallelFor(count, 8, [&](int64_t begin, int64_t end) {
      EXPECT_TRUE(end == count || (end - begin) % 8 == 0) << begin << " to " << end;
      EXPECT_LT(begin, end);
    });
  }
}

// A pragma that the compiler ignores, or a second runtime, would leave one.
TEST(ParallelFor, RunsOnAsManyThreadsAsAskedFor) {
  SetLoopThreads(3);
  Mutex mutex;
  std::set<std::thread::id> threads;
  ParallelFor(3, 1, [&](int64_t, int64_t) {
    MutexLock lock(&mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(static_cast<int>(threads.size()), LoopThreads());  // one in clang builds
}

TEST(ParallelFor, SmallLoopsStayInTheCaller) {
  SetLoopThreads(3);
  ParallelFor(64, 64, [caller = std::this_thread::get_id()](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(begin, 0);
    EXPECT_EQ(end, 64);
  });
}

TEST(LoopThreads, EachThreadHasASettingOfItsOwn) {
  SetLoopThreads(3);
  const int here = LoopThreads();
  std::thread([] {
    SetLoopThreads(1);
    EXPECT_EQ(LoopThreads(), 1);
  }).join();
  EXPECT_EQ(LoopThreads(), here);
}

}  // namespace
}  // namespace forerun
