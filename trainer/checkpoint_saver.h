// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "checkpoint/background_save.h"
#include "core/tensor/stateful.h"
#include "parallel/comm/process_group.h"
#include "trainer/arguments.h"
#include "trainer/checkpoint_metadata.h"

namespace forerun {

// Writes the checkpoints of one rank's run: at once, or with --async-save behind the steps that
// follow, one at a time. Belongs to the rank's compute thread.
class CheckpointSaver {
 public:
  // `group` holds all ranks and serves nothing else, so that saves behind the steps never come
  // between the steps' own messages. `print` takes a line for the user; may be empty.
  CheckpointSaver(const CheckpointArguments& arguments, std::unique_ptr<comm::ProcessGroup> group,
                  std::function<void(absl::string_view)> print);

  // A collective call. Fails on all ranks where it does on one; a save behind the steps fails at
  // the next call of any of these.
  absl::Status Save(int64_t iteration, Metadata metadata, absl::Span<Stateful* const> states);
  absl::Status AfterStep();  // does not wait
  absl::Status Finish();     // waits until all is written

 private:
  absl::Status Agree(const absl::Status& mine);
  absl::Status Say(absl::Status status);

  const CheckpointArguments arguments_;
  const std::unique_ptr<comm::ProcessGroup> group_;
  const std::function<void(absl::string_view)> print_;
  int64_t iteration_ = -1;  // that is being saved; -1: none
  BackgroundSave background_;
};

}  // namespace forerun
