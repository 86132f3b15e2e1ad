// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/schedule.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace forerun::pipeline {
namespace {

struct NamedSchedule {
  absl::string_view name;
  Schedule (*make)(int stages, int microbatches);
};
constexpr NamedSchedule kSchedules[] = {{"gpipe", GPipe}, {"1f1b", OneFOneB}};

char LetterOf(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return 'F';
    case ActionKind::kBackward:
      return 'B';
    case ActionKind::kBackwardInput:
      return 'I';
    case ActionKind::kBackwardWeight:
      return 'W';
  }
  return '?';
}

}  // namespace

std::string ToString(const Action& action) {
  std::string text(1, LetterOf(action.kind));
  absl::StrAppend(&text, action.microbatch);
  if (action.chunk > 0) absl::StrAppend(&text, ".", action.chunk);
  return text;
}

Schedule GPipe(int stages, int microbatches) {
  Schedule schedule = ForwardOnly(stages, microbatches);
  schedule.backward = true;
  for (ActionList& list : schedule.stages) {
    for (int m = 0; m < microbatches; ++m) list.push_back({ActionKind::kBackward, m});
  }
  return schedule;
}

Schedule OneFOneB(int stages, int microbatches) {
  Schedule schedule;
  schedule.microbatches = microbatches;
  for (int stage = 0; stage < stages; ++stage) {
    ActionList list;
    const int warm_up = std::min(microbatches, stages - 1 - stage);
    for (int m = 0; m < warm_up; ++m) list.push_back({ActionKind::kForward, m});
    for (int m = 0; m < microbatches - warm_up; ++m) {
      list.push_back({ActionKind::kForward, warm_up + m});
      list.push_back({ActionKind::kBackward, m});
    }
    for (int m = microbatches - warm_up; m < microbatches; ++m) {
      list.push_back({ActionKind::kBackward, m});
    }
    schedule.stages.push_back(std::move(list));
  }
  return schedule;
}

Schedule ForwardOnly(int stages, int microbatches) {
  Schedule schedule;
  schedule.microbatches = microbatches;
  schedule.backward = false;
  ActionList list;
  for (int m = 0; m < microbatches; ++m) list.push_back({ActionKind::kForward, m});
  schedule.stages.assign(stages, list);
  return schedule;
}

absl::StatusOr<Schedule> ScheduleByName(absl::string_view name, int stages, int microbatches) {
  std::vector<absl::string_view> names;
  for (const NamedSchedule& known : kSchedules) {
    if (known.name == name) return known.make(stages, microbatches);
    names.push_back(known.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("pipeline schedule ", name,
                                                 " is not known; choose ",
                                                 absl::StrJoin(names, " or ")));
}

}  // namespace forerun::pipeline
