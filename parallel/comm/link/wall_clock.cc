// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/link/wall_clock.h"

#include <utility>

namespace forerun::comm {

WallClock::WallClock() : begin_(CondVar::Clock::now()), thread_([this] { Run(); }) {}

WallClock::~WallClock() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    changed_.NotifyOne();
  }
  thread_.join();
}

Clock::Time WallClock::Now() const {
  return std::chrono::duration_cast<Time>(CondVar::Clock::now() - begin_);
}

void WallClock::CallAt(Time time, std::function<void()> callback) {
  MutexLock lock(&mutex_);
  const auto added = callbacks_.emplace(time, std::move(callback));
  if (added == callbacks_.begin()) changed_.NotifyOne();
}

void WallClock::Run() {
  mutex_.Lock();
  while (!ending_ || !callbacks_.empty()) {
    if (callbacks_.empty()) {
      changed_.Wait(&mutex_);
    } else if (const Time next = callbacks_.begin()->first; Now() < next && !ending_) {
      changed_.WaitUntil(&mutex_, begin_ + next);
    } else {
      std::function<void()> callback = std::move(callbacks_.begin()->second);
      callbacks_.erase(callbacks_.begin());
      mutex_.Unlock();
      callback();
      callback = nullptr;
      mutex_.Lock();
    }
  }
  mutex_.Unlock();
}

}  // namespace forerun::comm
