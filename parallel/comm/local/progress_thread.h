// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"

namespace forerun::comm {

// A thread that runs what it is given, first in first out, and sleeps when there is nothing.
class ProgressThread {
 public:
  ProgressThread();
  // Runs what was posted, then ends. Not from a task of its own.
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // Any thread, its own tasks too, until the destructor begins. Never runs the task in the caller.
  void Post(std::function<void()> task);

 private:
  void Run();

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace forerun::comm
