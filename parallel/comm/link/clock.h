// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

namespace forerun::comm {

// Time as links know it: real, or made up by a test.
class Clock {
 public:
  using Time = std::chrono::nanoseconds;  // since the clock's beginning; also a span of time

  virtual ~Clock() = default;

  virtual Time Now() const = 0;
  // Calls `callback` once, at `time` or as soon after it as may be, never inside this call. Those
  // of one time are called in the order in which they were given.
  virtual void CallAt(Time time, std::function<void()> callback) = 0;
  // For who waits for what a callback will bring about, and then looks again. True: time went on to
  // the next callback, which has run. False: there is none, or time passes by itself.
  virtual bool Advance() = 0;
};

}  // namespace forerun::comm
