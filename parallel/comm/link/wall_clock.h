// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "parallel/comm/link/clock.h"

namespace forerun::comm {

// Real time, from construction. Any thread may call. One thread calls all callbacks, one after the
// other: they do not block. Callbacks that are not yet due when it ends are called then, so that
// nobody waits for them for ever; those that they ask for, too.
class WallClock final : public Clock {
 public:
  WallClock();
  ~WallClock() override;
  WallClock(const WallClock&) = delete;
  WallClock& operator=(const WallClock&) = delete;

  Time Now() const override;
  void CallAt(Time time, std::function<void()> callback) override;
  bool Advance() override { return false; }

 private:
  void Run();

  const CondVar::Clock::time_point begin_;
  Mutex mutex_;
  CondVar changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::multimap<Time, std::function<void()>> callbacks_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses the others
};

}  // namespace forerun::comm
