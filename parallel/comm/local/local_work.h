// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "core/base/mutex.h"
#include "parallel/comm/work.h"

namespace forerun::comm {

// A Work that somebody else completes, once: what in-process backends hand out.
class CompletableWork final : public Work::State {
 public:
  // A wait that passes `deadline` calls `on_timeout`, which must complete this work (usually by
  // failing everything); it may find that it was completed meanwhile.
  CompletableWork(std::chrono::milliseconds deadline, std::function<void()> on_timeout)
      : deadline_(deadline), on_timeout_(std::move(on_timeout)) {}

  // The first call counts. Runs callbacks in the caller, who holds no lock.
  void Complete(const absl::Status& status);

  bool Done() const override;
  void Wait(Stream& stream) override;
  void Synchronize() override;
  void OnDone(std::function<void(const absl::Status&)> callback) override;

 private:
  const std::chrono::milliseconds deadline_;
  const std::function<void()> on_timeout_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<void(const absl::Status&)>> callbacks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace forerun::comm
