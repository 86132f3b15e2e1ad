// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/snapshot.h"
#include "core/tensor/stateful.h"

namespace forerun {

// Saves a checkpoint on a thread of its own while its owner goes on: the same files, byte for byte,
// as SaveCheckpoint writes of the same states. At most one is under way. Belongs to one thread.
class BackgroundSave {
 public:
  // Called on that thread; see Agree in checkpoint.h.
  using AgreeFunction = std::function<absl::Status(const absl::Status& mine)>;

  explicit BackgroundSave(AgreeFunction agree) : agree_(std::move(agree)) {}
  ~BackgroundSave();  // waits
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  // Copies what the states hold, which may change once this returns. A collective call, as
  // SaveCheckpoint. Waits for the one before first, and returns its error.
  absl::Status Start(const SaveOptions& options, absl::Span<Stateful* const> states);
  // Whether one was started, has ended and was not waited for.
  bool ended() const { return thread_.joinable() && ended_.load(); }
  // Until none is under way. The error of the last, once.
  absl::Status Wait();

 private:
  const AgreeFunction agree_;
  std::thread thread_;
  std::atomic<bool> ended_{false};
  absl::Status status_;  // the thread's until it has ended
};

}  // namespace forerun
