// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint_saver.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint.h"
#include "core/base/status_macros.h"
#include "parallel/comm/work.h"
#include "parallel/data_parallel/agreement.h"

namespace forerun {

CheckpointSaver::CheckpointSaver(const CheckpointArguments& arguments,
                                 std::unique_ptr<comm::ProcessGroup> group,
                                 std::function<void(absl::string_view)> print)
    : arguments_(arguments),
      group_(std::move(group)),
      print_(std::move(print)),
      background_([this](const absl::Status& mine) { return Agree(mine); }) {}

// May be on the background's thread, where an exception has nobody to catch it.
absl::Status CheckpointSaver::Agree(const absl::Status& mine) {
  try {
    return AgreeOnStatus(*group_, mine);
  } catch (const comm::GroupError& error) {
    return error.status();
  }
}

absl::Status CheckpointSaver::Save(int64_t iteration, Metadata metadata,
                                   absl::Span<Stateful* const> states) {
  FR_RETURN_IF_ERROR(Finish());
  const SaveOptions options{arguments_.save, iteration,           group_->rank(),
                            group_->size(),  std::move(metadata), arguments_.save_retain_interval};
  iteration_ = iteration;
  if (arguments_.async_save) return background_.Start(options, states);
  return Say(
      SaveCheckpoint(options, states, [this](const absl::Status& mine) { return Agree(mine); }));
}

absl::Status CheckpointSaver::AfterStep() {
  return background_.ended() ? Finish() : absl::OkStatus();
}

absl::Status CheckpointSaver::Finish() {
  return iteration_ < 0 ? absl::OkStatus() : Say(background_.Wait());
}

absl::Status CheckpointSaver::Say(absl::Status status) {
  const int64_t iteration = std::exchange(iteration_, -1);
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat("the checkpoint of iteration ", iteration,
                                                    " was not saved: ", status.message()));
  }
  if (print_) {
    print_(absl::StrCat("saved checkpoint of iteration ", iteration, " in ", arguments_.save));
  }
  return absl::OkStatus();
}

}  // namespace forerun
