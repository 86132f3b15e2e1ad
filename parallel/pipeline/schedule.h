// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// A pipeline schedule is data: for each stage the list of what it computes, in order. Messages are
// implied. Before a forward or an input-gradient action a stage receives what the neighbouring
// chunk sent, unless it is at the model's end; after it, it sends its result on. Receives block
// the action, sends are issued and complete when the peer receives (rendezvous); messages of one
// direction between two stages are matched first in, first out.
namespace forerun::pipeline {

enum class ActionKind : uint8_t {
  kForward,
  kBackward,        // input and weight gradients
  kBackwardInput,   // the two halves apart, as zero-bubble schedules have them
  kBackwardWeight,
};

struct Action {
  ActionKind kind = ActionKind::kForward;
  int microbatch = 0;
  int chunk = 0;  // of the stage, when it holds several

  bool operator==(const Action&) const = default;
};
std::string ToString(const Action& action);  // "F3", "B3", "I3", "W3"; with a chunk above 0 "F3.1"

using ActionList = std::vector<Action>;

// The lists of all stages. Chunk c of stage s is piece c * stages + s of the model.
struct Schedule {
  std::vector<ActionList> stages;
  int microbatches = 0;
  int chunks = 1;       // a stage
  bool backward = true;  // false: evaluation, forward passes only
};

// All forward passes, then all backward passes (Huang et al. 2019): bubble (p - 1) / m of the
// ideal time, m activations kept.
Schedule GPipe(int stages, int microbatches);

// One forward, one backward (PipeDream-flush; Narayanan et al. 2021): stage s warms up with
// min(m, p - 1 - s) forward passes, then alternates. The same bubble, min(m, p - s) activations.
Schedule OneFOneB(int stages, int microbatches);

// Forward passes only.
Schedule ForwardOnly(int stages, int microbatches);

// "gpipe" or "1f1b"; an error lists the names.
absl::StatusOr<Schedule> ScheduleByName(absl::string_view name, int stages, int microbatches);

}  // namespace forerun::pipeline
