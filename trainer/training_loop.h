// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "parallel/comm/group_factory.h"
#include "trainer/arguments.h"
#include "trainer/metrics.h"
#include "trainer/model_setup.h"

namespace forerun {

// What rank 0 tells the outside. Functions may be empty.
struct TrainingOutput {
  std::function<void(absl::string_view)> print;     // one line or table for a person
  std::function<void(const StepMetrics&)> on_step;  // every step
  std::function<void(double)> on_evaluation;        // validation loss
  std::function<void(uint64_t)> on_checksum;        // with --param-checksum
};

// The whole life of one rank: set up, load, train, evaluate, save, report. A collective call of all
// ranks; throws comm::GroupError.
absl::Status RunTraining(const Arguments& arguments, const Datasets& datasets,
                         comm::GroupFactory& factory, const TrainingOutput& output);

// All ranks, as threads of this process. Returns the first error of any rank.
absl::Status TrainWithThreads(const Arguments& arguments, const TrainingOutput& output);

}  // namespace forerun
