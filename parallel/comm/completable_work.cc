// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/completable_work.h"

#include <utility>

namespace forerun::comm {

void CompletableWork::Complete(const absl::Status& status) {
  std::vector<Callback> callbacks;
  {
    MutexLock lock(&mutex_);
    if (done_) return;
    done_ = true;
    status_ = status;
    callbacks = std::exchange(callbacks_, {});
    changed_.NotifyAll();
  }
  if (callbacks.empty()) return;
  Run([callbacks = std::move(callbacks), status] {
    for (const Callback& callback : callbacks) callback(status);
  });
}

bool CompletableWork::Done() const {
  MutexLock lock(&mutex_);
  return done_;
}

void CompletableWork::Wait(Stream&) { Synchronize(); }

void CompletableWork::Synchronize() {
  bool late = false;
  if (deadline_.has_value()) {
    const auto deadline = CondVar::Clock::now() + *deadline_;
    MutexLock lock(&mutex_);
    while (!done_ && !late) late = !changed_.WaitUntil(&mutex_, deadline);
    late = !done_;
  }
  if (late) OnTimeout();
  MutexLock lock(&mutex_);
  while (!done_) changed_.Wait(&mutex_);
  if (!status_.ok()) throw GroupError(status_);
}

void CompletableWork::OnDone(Callback callback) {
  absl::Status status;
  {
    MutexLock lock(&mutex_);
    if (!done_) return callbacks_.push_back(std::move(callback));
    status = status_;
  }
  callback(status);
}

}  // namespace forerun::comm
