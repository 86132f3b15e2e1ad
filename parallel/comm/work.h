// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"
#include "core/device/device.h"

namespace forerun::comm {

// A collective or message that failed, a deadline that passed, or a group that was aborted. The
// only exception of Forerun: thrown by waits inside forward and backward, caught where a rank is
// run, which aborts all groups of the process. what() is one sentence, that of the first failure.
class GroupError : public std::runtime_error {
 public:
  explicit GroupError(const absl::Status& status)
      : std::runtime_error(std::string(status.message())), status_(status) {}
  const absl::Status& status() const { return status_; }

 private:
  const absl::Status status_;
};

// One operation that was issued to a group. Cheap to copy; copies are the same operation. The
// operation goes on whether or not anybody keeps its Work, and holds its buffers until it ends.
// Any thread may call.
class [[nodiscard]] Work {
 public:
  // What a backend implements.
  class State {
   public:
    virtual ~State() = default;
    virtual bool Done() const = 0;
    // Orders `stream` after the operation; on cpu blocks, until the group's deadline. Throws
    // GroupError.
    virtual void Wait(Stream& stream) = 0;
    // Blocks the host. Throws GroupError.
    virtual void Synchronize() = 0;
    virtual void OnDone(std::function<void(const absl::Status&)> callback) = 0;
  };

  Work() = default;  // no operation: done
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

  bool Done() const { return state_ == nullptr || state_->Done(); }
  void Wait(Stream& stream) const {
    if (state_ != nullptr) state_->Wait(stream);
  }
  void Synchronize() const {
    if (state_ != nullptr) state_->Synchronize();
  }
  // Calls `callback` once, when the operation has ended or failed: at once, in the caller, if it
  // already has, otherwise on a thread of the backend that is inside no call of any rank, so that a
  // rank may hold a lock while it issues and want the same one in its callbacks. A wait may return
  // before the callback has run. The callback must not block; it may issue further operations.
  void OnDone(std::function<void(const absl::Status&)> callback) const {
    if (state_ != nullptr) return state_->OnDone(std::move(callback));
    callback(absl::OkStatus());
  }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace forerun::comm
