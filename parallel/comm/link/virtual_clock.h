// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>

#include "parallel/comm/link/clock.h"

namespace forerun::comm {

// Time that stands still until it is moved: a queue of callbacks in order of time. Everything that
// happens is a function of the calls, so times are exact and runs repeat themselves. One thread;
// callbacks may call CallAt, and do not move time.
class VirtualClock final : public Clock {
 public:
  Time Now() const override { return now_; }
  // A time that has passed means now.
  void CallAt(Time time, std::function<void()> callback) override;
  bool Advance() override;
  // Runs what is due until `time`, in order, and ends there.
  void AdvanceTo(Time time);
  void AdvanceBy(Time span) { AdvanceTo(now_ + span); }
  // Until nothing is left.
  void AdvanceToTheEnd();

 private:
  Time now_{0};
  std::multimap<Time, std::function<void()>> callbacks_;
};

}  // namespace forerun::comm
