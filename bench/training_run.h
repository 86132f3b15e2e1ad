// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "models/config.h"
#include "parallel/comm/link/link.h"
#include "trainer/rank_trainer.h"

namespace forerun {

// A real training job of two data-parallel ranks, which are threads with one core each.
struct TrainingSpec {
  GptConfig config;
  RankTrainerOptions options;
  comm::Link::Options link;  // of each rank; the default takes no time
  int warmup_steps = 2;      // not measured
  int steps = 5;
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
};
absl::StatusOr<TrainingResult> RunTraining(const TrainingSpec& spec);

// GPT-2's kind, 26M parameters in fp32: 8 layers, 512 wide. On each rank 2 samples of 256 tokens a
// step. Sharded optimizer, overlap of gathers and reductions.
TrainingSpec Gpt26M();

}  // namespace forerun
