// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/simulate.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace forerun::pipeline {
namespace {

// A message under way: which microbatch and piece of the model it is for, and when it arrives.
struct Message {
  int microbatch;
  int piece;
  double arrival;
};

class Simulator {
 public:
  Simulator(const Schedule& schedule, const ActionCosts& costs)
      : schedule_(schedule),
        costs_(costs),
        stages_(static_cast<int>(schedule.stages.size())),
        pieces_(stages_ * schedule.chunks),
        next_(stages_, 0),
        free_at_(stages_, 0.0),
        live_(stages_, 0) {
    result_.stages.resize(stages_);
    result_.peak_activations.assign(stages_, 0);
  }

  absl::StatusOr<Simulation> Run() {
    for (int stage = 0; stage < stages_; ++stage) FR_RETURN_IF_ERROR(CheckComplete(stage));
    bool moved = true;
    while (moved) {
      moved = false;
      for (int stage = 0; stage < stages_; ++stage) {
        while (next_[stage] < schedule_.stages[stage].size()) {
          FR_ASSIGN_OR_RETURN(const bool done, TryNext(stage));
          if (!done) break;
          moved = true;
        }
      }
    }
    for (int stage = 0; stage < stages_; ++stage) {
      if (next_[stage] < schedule_.stages[stage].size()) return Stuck(stage);
    }
    Summarise();
    return std::move(result_);
  }

 private:
  int PieceOf(int stage, const Action& action) const { return action.chunk * stages_ + stage; }

  // Each action that the schedule's kind calls for exactly once, in an order that its own stage
  // can run.
  absl::Status CheckComplete(int stage) const {
    std::set<std::tuple<ActionKind, int, int>> seen;
    for (const Action& action : schedule_.stages[stage]) {
      const auto where = [&] { return absl::StrCat("stage ", stage, ": ", ToString(action)); };
      if (action.microbatch < 0 || action.microbatch >= schedule_.microbatches ||
          action.chunk < 0 || action.chunk >= schedule_.chunks) {
        return absl::InvalidArgumentError(absl::StrCat(where(), " is of no microbatch and chunk"));
      }
      const auto has = [&](ActionKind kind) {
        return seen.count({kind, action.microbatch, action.chunk}) > 0;
      };
      // A whole backward pass contains both halves.
      if (has(action.kind) || (action.kind != ActionKind::kForward && has(ActionKind::kBackward)) ||
          (action.kind == ActionKind::kBackward && has(ActionKind::kBackwardInput))) {
        return absl::InvalidArgumentError(absl::StrCat(where(), " runs twice"));
      }
      if (action.kind != ActionKind::kForward && !has(ActionKind::kForward)) {
        return absl::InvalidArgumentError(absl::StrCat(where(), " runs before its forward pass"));
      }
      if (action.kind == ActionKind::kBackwardWeight && !has(ActionKind::kBackwardInput)) {
        return absl::InvalidArgumentError(
            absl::StrCat(where(), " runs before its input gradients"));
      }
      seen.insert({action.kind, action.microbatch, action.chunk});
    }
    for (int m = 0; m < schedule_.microbatches; ++m) {
      for (int c = 0; c < schedule_.chunks; ++c) {
        const bool forward = seen.count({ActionKind::kForward, m, c}) > 0;
        const bool backward = seen.count({ActionKind::kBackward, m, c}) > 0 ||
                              (seen.count({ActionKind::kBackwardInput, m, c}) > 0 &&
                               seen.count({ActionKind::kBackwardWeight, m, c}) > 0);
        if (forward && backward == schedule_.backward) continue;
        return absl::InvalidArgumentError(absl::StrCat(
            "stage ", stage, ": the ", forward ? "backward" : "forward", " pass of microbatch ", m,
            ", chunk ", c, forward && !schedule_.backward ? " should not run" : " is missing"));
      }
    }
    return absl::OkStatus();
  }

  // The stage whose result an action needs, or -1 at the model's ends.
  int SourceOf(int stage, const Action& action) const {
    if (action.kind == ActionKind::kBackwardWeight) return -1;
    const int piece = PieceOf(stage, action);
    const int source = action.kind == ActionKind::kForward ? piece - 1 : piece + 1;
    return source < 0 || source >= pieces_ ? -1 : source % stages_;
  }

  // Runs the stage's next action if what it needs has been sent; false if it must wait.
  absl::StatusOr<bool> TryNext(int stage) {
    const Action& action = schedule_.stages[stage][next_[stage]];
    double start = free_at_[stage];
    const int source = SourceOf(stage, action);
    if (source >= 0) {
      std::deque<Message>& channel = channels_[{source, stage}];
      if (channel.empty()) return false;
      const Message message = channel.front();
      channel.pop_front();
      if (message.microbatch != action.microbatch || message.piece != PieceOf(stage, action)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "stage ", stage, ": ", ToString(action), " would receive the message for microbatch ",
            message.microbatch, " of model piece ", message.piece, " from stage ", source));
      }
      start = std::max(start, message.arrival);
    }
    const double end = start + Duration(action.kind);
    Send(stage, action, end);
    Count(stage, action);
    result_.stages[stage].push_back({action, start, end});
    free_at_[stage] = end;
    ++next_[stage];
    return true;
  }

  double Duration(ActionKind kind) const {
    switch (kind) {
      case ActionKind::kForward:
        return costs_.forward;
      case ActionKind::kBackward:
        return costs_.backward_input + costs_.backward_weight;
      case ActionKind::kBackwardInput:
        return costs_.backward_input;
      case ActionKind::kBackwardWeight:
        return costs_.backward_weight;
    }
    return 0.0;
  }

  void Send(int stage, const Action& action, double end) {
    if (action.kind == ActionKind::kBackwardWeight) return;
    const int piece = PieceOf(stage, action);
    const int target = action.kind == ActionKind::kForward ? piece + 1 : piece - 1;
    if (target < 0 || target >= pieces_) return;
    channels_[{stage, target % stages_}].push_back(
        {action.microbatch, target, end + costs_.message});
  }

  void Count(int stage, const Action& action) {
    if (action.kind == ActionKind::kForward) ++live_[stage];
    result_.peak_activations[stage] = std::max(result_.peak_activations[stage], live_[stage]);
    if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kBackwardWeight) {
      --live_[stage];
    }
  }

  absl::Status Stuck(int stage) const {
    const Action& action = schedule_.stages[stage][next_[stage]];
    return absl::InvalidArgumentError(absl::StrCat("stage ", stage, ": ", ToString(action),
                                                   " waits for ever for a message from stage ",
                                                   SourceOf(stage, action)));
  }

  void Summarise() {
    double idle = 0.0, busy = 0.0;
    for (const auto& stage : result_.stages) {
      if (!stage.empty()) result_.makespan = std::max(result_.makespan, stage.back().end);
    }
    for (const auto& stage : result_.stages) {
      double own = 0.0;
      for (const TimedAction& timed : stage) own += timed.end - timed.start;
      busy += own;
      idle += result_.makespan - own;
    }
    result_.bubble = busy > 0.0 ? idle / busy : 0.0;
  }

  const Schedule& schedule_;
  const ActionCosts costs_;
  const int stages_;
  const int pieces_;
  std::vector<size_t> next_;
  std::vector<double> free_at_;
  std::vector<int> live_;
  std::map<std::pair<int, int>, std::deque<Message>> channels_;  // by (from, to) stage
  Simulation result_;
};

}  // namespace

absl::StatusOr<Simulation> Simulate(const Schedule& schedule, const ActionCosts& costs) {
  return Simulator(schedule, costs).Run();
}

absl::Status Verify(const Schedule& schedule) { return Simulate(schedule, {}).status(); }

std::string Timeline(const Simulation& simulation, int width) {
  std::string text;
  const double scale = simulation.makespan > 0.0 ? width / simulation.makespan : 0.0;
  for (size_t stage = 0; stage < simulation.stages.size(); ++stage) {
    std::string line(width, '.');
    for (const TimedAction& timed : simulation.stages[stage]) {
      const bool forward = timed.action.kind == ActionKind::kForward;
      const char mark = forward ? static_cast<char>('0' + timed.action.microbatch % 10)
                                : static_cast<char>('a' + timed.action.microbatch % 26);
      const int end = std::min(width, static_cast<int>(timed.end * scale + 0.5));
      for (int i = static_cast<int>(timed.start * scale + 0.5); i < end; ++i) line[i] = mark;
    }
    absl::StrAppend(&text, "stage ", stage, " |", line, "|\n");
  }
  return text;
}

}  // namespace forerun::pipeline
