// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/local/progress_thread.h"

#include <utility>

namespace forerun::comm {

ProgressThread::ProgressThread() : thread_([this] { Run(); }) {}

ProgressThread::~ProgressThread() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
    changed_.NotifyOne();
  }
  thread_.join();
}

void ProgressThread::Post(std::function<void()> task) {
  MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
  changed_.NotifyOne();
}

void ProgressThread::Run() {
  while (true) {
    std::function<void()> task;
    {
      MutexLock lock(&mutex_);
      while (tasks_.empty() && !ending_) changed_.Wait(&mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace forerun::comm
