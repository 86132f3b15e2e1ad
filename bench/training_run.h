// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "models/config.h"
#include "parallel/comm/link/link.h"
#include "trainer/rank_trainer.h"

namespace forerun {

// A real training job on mock data: ranks are threads, each with its own link.
struct TrainingSpec {
  GptConfig config;
  RankTrainerOptions options;
  int data_parallel_size = 2;
  int tensor_model_parallel_size = 1;
  int pipeline_model_parallel_size = 1;
  int threads_per_rank = 1;
  comm::Link::Options link;  // of each rank; the default takes no time
  int warmup_steps = 2;      // not measured
  int steps = 5;
  // Called on rank 0's thread after each measured step, while other ranks may be ahead by one.
  std::function<void(const StepMetrics&)> after_step;

  int world_size() const {
    return data_parallel_size * tensor_model_parallel_size * pipeline_model_parallel_size;
  }
};

// Medians over the measured steps, rank 0's, in seconds.
struct TrainingResult {
  double step = 0.0;
  double forward = 0.0;
  double backward = 0.0;
  double update = 0.0;
  double exposed_gather = 0.0;
  double exposed_reduce = 0.0;
  std::vector<int64_t> bucket_bytes;  // in the order of gathers
  int64_t peak_bytes = 0;             // rank 0's tensors
  double loss = 0.0;                  // of the last step
};
absl::StatusOr<TrainingResult> RunTraining(const TrainingSpec& spec);

// GPT-2's kind, 26M parameters in fp32: 8 layers, 512 wide. On each rank 2 samples of 256 tokens a
// step. Sharded optimizer, overlap of gathers and reductions.
TrainingSpec Gpt26M();

}  // namespace forerun
