// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/local/local_work.h"

#include <utility>

namespace forerun::comm {

void CompletableWork::Complete(const absl::Status& status) {
  std::vector<std::function<void(const absl::Status&)>> callbacks;
  {
    MutexLock lock(&mutex_);
    if (done_) return;
    done_ = true;
    status_ = status;
    callbacks = std::exchange(callbacks_, {});
    changed_.NotifyAll();
  }
  for (const auto& callback : callbacks) callback(status);
}

bool CompletableWork::Done() const {
  MutexLock lock(&mutex_);
  return done_;
}

void CompletableWork::Wait(Stream&) { Synchronize(); }

void CompletableWork::Synchronize() {
  const auto deadline = CondVar::Clock::now() + deadline_;
  bool late = false;
  {
    MutexLock lock(&mutex_);
    while (!done_ && !late) late = !changed_.WaitUntil(&mutex_, deadline);
    late = !done_;
  }
  if (late) on_timeout_();
  MutexLock lock(&mutex_);
  while (!done_) changed_.Wait(&mutex_);
  if (!status_.ok()) throw GroupError(status_);
}

void CompletableWork::OnDone(std::function<void(const absl::Status&)> callback) {
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    if (!done_) return callbacks_.push_back(std::move(callback));
    status = status_;
  }
  callback(status);
}

}  // namespace forerun::comm
