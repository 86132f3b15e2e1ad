// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "parallel/comm/group_factory.h"
#include "parallel/data_parallel/bucket_plan.h"
#include "trainer/arguments.h"
#include "trainer/metrics.h"
#include "trainer/model_setup.h"
#include "trainer/step_trace.h"

namespace forerun {

// What rank 0 tells the outside, but for the last. Functions may be empty.
struct TrainingOutput {
  std::function<void(absl::string_view)> print;     // one line or table for a person
  std::function<void(const StepMetrics&)> on_step;  // every step
  std::function<void(double)> on_evaluation;        // validation loss
  std::function<void(uint64_t)> on_checksum;        // with --param-checksum
  // Every rank's, on its thread.
  std::function<void(int rank, const StepTrace&, const BucketPlan&)> on_trace;
};

// The whole life of one rank: set up, load, train, evaluate, save, report. A collective call of all
// ranks; throws comm::GroupError.
absl::Status RunTraining(const Arguments& arguments, const Datasets& datasets,
                         comm::GroupFactory& factory, const TrainingOutput& output);

// All ranks, as threads of this process. Returns the first error of any rank.
absl::Status TrainWithThreads(const Arguments& arguments, const TrainingOutput& output);

}  // namespace forerun
