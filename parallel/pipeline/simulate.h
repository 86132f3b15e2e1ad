// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "parallel/pipeline/schedule.h"

namespace forerun::pipeline {

// Durations of one chunk's actions, in any unit of time.
struct ActionCosts {
  double forward = 1.0;
  double backward_input = 1.0;
  double backward_weight = 1.0;
  double message = 0.0;  // from the end of an action to its result at the neighbour
};

struct TimedAction {
  Action action;
  double start = 0.0;
  double end = 0.0;
};

struct Simulation {
  std::vector<std::vector<TimedAction>> stages;
  double makespan = 0.0;
  double bubble = 0.0;  // idle / ideal compute time of a stage, mean over stages
  std::vector<int> peak_activations;  // by stage: microbatches between forward and backward
};

// Runs a schedule symbolically: every action starts when its stage is free, its message has
// arrived, and its own forward pass has ended. This is also the proof that a schedule is sound. It
// fails, naming stage, action and what that waits for, when
//  - an action is missing, doubled, or of a microbatch or chunk that does not exist;
//  - an action comes before what it depends on in its own list;
//  - two stages would match messages of different microbatches (first in, first out);
//  - stages wait for each other in a circle.
absl::StatusOr<Simulation> Simulate(const Schedule& schedule, const ActionCosts& costs);

// Only the proof.
absl::Status Verify(const Schedule& schedule);

// One line a stage, `width` columns for the whole time: digits are forward passes (the microbatch
// modulo 10), letters a.. are backward passes, dots are idle.
std::string Timeline(const Simulation& simulation, int width);

}  // namespace forerun::pipeline
