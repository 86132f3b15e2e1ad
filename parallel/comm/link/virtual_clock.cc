// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/link/virtual_clock.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace forerun::comm {

void VirtualClock::CallAt(Time time, std::function<void()> callback) {
  callbacks_.emplace(std::max(time, now_), std::move(callback));
}

bool VirtualClock::Advance() {
  if (callbacks_.empty()) return false;
  const auto next = callbacks_.begin();
  now_ = next->first;
  const std::function<void()> callback = std::move(next->second);
  callbacks_.erase(next);
  callback();
  return true;
}

void VirtualClock::AdvanceTo(Time time) {
  FR_CHECK_GE(time.count(), now_.count()) << "time in nanoseconds does not run backwards";
  while (!callbacks_.empty() && callbacks_.begin()->first <= time) Advance();
  now_ = time;
}

void VirtualClock::AdvanceToTheEnd() {
  while (Advance()) {
  }
}

}  // namespace forerun::comm
