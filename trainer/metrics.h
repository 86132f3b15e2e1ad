// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace forerun {

// Milliseconds that a rank's compute was blocked in a step, by what it waited for.
struct ExposedTime {
  double param_gather_ms = 0.0;  // at the gate
  double grad_reduce_ms = 0.0;   // before the optimizer
  double pipeline_ms = 0.0;      // in receives
};

// Milliseconds of a step by what a rank was at, waits for gathers and reductions included, those
// in the pipeline's receives not. Between steps, and between microbatches, there is more.
struct StepPhases {
  double forward_ms = 0.0;
  double backward_ms = 0.0;
  double update_ms = 0.0;  // all after the last backward pass
};

// One training step, the same on every rank but for the times, which are rank 0's.
struct StepMetrics {
  int64_t iteration = 0;  // from 1
  int64_t consumed_samples = 0;
  double loss = 0.0;       // mean over the global batch
  double grad_norm = 0.0;  // before clipping
  double lr = 0.0;
  double step_ms = 0.0;
  double tokens_per_second = 0.0;
  ExposedTime exposed;
  StepPhases phases;
};

// A line in Megatron-LM's form, numbers of one log interval averaged by the caller.
std::string LogLine(const StepMetrics& metrics, int64_t train_iters, int64_t global_batch_size);

// One JSON object a line, numbers in full precision, written through at each step.
class MetricsFile {
 public:
  static absl::StatusOr<MetricsFile> Open(const std::string& path);
  absl::Status Write(const StepMetrics& metrics);

 private:
  MetricsFile(std::string path, std::ofstream file)
      : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  std::ofstream file_;
};

}  // namespace forerun
