// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/background_save.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace forerun {

BackgroundSave::~BackgroundSave() { Wait().IgnoreError(); }

absl::Status BackgroundSave::Start(const SaveOptions& options, absl::Span<Stateful* const> states) {
  FR_RETURN_IF_ERROR(Wait());
  FR_ASSIGN_OR_RETURN(Snapshot snapshot, Snapshot::Of(states));
  ended_ = false;
  try {
    thread_ = std::thread([this, options, snapshot = std::move(snapshot)]() mutable {
      Stateful* const copy[] = {&snapshot};
      status_ = SaveCheckpoint(options, copy, agree_);
      ended_ = true;
    });
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the thread that saves cannot be started: ", error.what()));
  }
  return absl::OkStatus();
}

absl::Status BackgroundSave::Wait() {
  if (!thread_.joinable()) return absl::OkStatus();
  thread_.join();
  return std::exchange(status_, absl::OkStatus());
}

}  // namespace forerun
