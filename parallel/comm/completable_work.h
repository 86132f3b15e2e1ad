// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "core/base/mutex.h"
#include "parallel/comm/work.h"

namespace forerun::comm {

// A Work on a host that somebody else completes, once: the base of what in-process backends hand
// out. Any thread may call.
class CompletableWork : public Work::State {
 public:
  using Callback = std::function<void(const absl::Status&)>;

  // How long a wait lasts before OnTimeout; none: for ever.
  explicit CompletableWork(absl::optional<std::chrono::milliseconds> deadline)
      : deadline_(deadline) {}

  // The first call counts. The caller holds no lock that a callback could want.
  void Complete(const absl::Status& status);

  bool Done() const override;
  void Wait(Stream& stream) override;
  void Synchronize() override;
  void OnDone(Callback callback) override;

 protected:
  // A wait has passed its deadline. Makes Complete be called soon, usually by failing the group; it
  // may already have been, meanwhile.
  virtual void OnTimeout() {}
  // Runs what was registered before the end; the default does so here, in whoever completes.
  virtual void Run(const std::function<void()>& callbacks) { callbacks(); }

 private:
  const absl::optional<std::chrono::milliseconds> deadline_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<Callback> callbacks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace forerun::comm
