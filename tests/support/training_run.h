// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace forerun {

// What a run of the trainer reported, by step.
struct TrainingRun {
  std::vector<int64_t> iterations;
  std::vector<double> losses;
  std::vector<double> grad_norms;
  std::vector<double> lrs;
  std::vector<std::string> lines;  // for a person
  uint64_t checksum = 0;           // with --param-checksum

  bool Said(absl::string_view text) const;  // in some line
};

// Trains with a user's flags, all ranks as threads.
absl::StatusOr<TrainingRun> TrainWith(absl::string_view flags);

// The flags of T0 (tests/support/job.h) with bytes for a vocabulary, whose padding depends on the
// tensor size, and with dropout, warm-up and decay; and those that turn on all that overlaps.
extern const char kT0Flags[];
extern const char kOverlapFlags[];

// "" if the steps of `part` are as those of `whole` with the same numbers: losses and gradient
// norms within `bound`, relative, and learning rates the same.
std::string StepDifference(const TrainingRun& part, const TrainingRun& whole, double bound);

// "" if two folders hold, of one iteration, the same tensors with the same bits.
std::string TensorDifference(const std::string& folder_a, const std::string& folder_b,
                             int64_t iteration);

}  // namespace forerun
