// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ops/op_context.h"
#include "data/dataset.h"
#include "models/config.h"
#include "models/recompute_plan.h"
#include "models/registration_order.h"
#include "trainer/rank_trainer.h"

namespace forerun {

// One training job, all ranks as threads: what the tests of whole runs compare.
struct JobSpec {
  GptConfig config;
  RegistrationOrder order;
  RecomputePlan recompute;
  ChunkFactory make_chunk;               // empty: a GptChunk of the config
  const KernelTable* kernels = nullptr;  // null: those of the cpu
  const Dataset* dataset = nullptr;      // null: mock data
  int tp = 1;
  int pp = 1;
  int dp = 1;
  RankTrainerOptions options;
  int64_t iterations = 10;
  double lr = 1e-3;
  // Called on every rank before each step and after the last one.
  std::function<absl::Status(RankTrainer&, int64_t iterations_done)> inspect;
};

// The small model of the public cases: 4 layers, hidden 64, 4 heads, ffn 128, sequence 32,
// vocabulary 128, untied, learned positions, fp32; micro batch 1, global batch 8; AdamW, clip 1.0.
JobSpec T0();
// T0 with everything on that overlaps: sharded optimizer, 8192-element buckets, poison.
JobSpec T0Overlapped();

// How a rank builds its part; `spec` outlives it.
ChunkFactory ChunkFactoryOf(const JobSpec& spec);

struct JobResult {
  std::vector<double> losses;  // by iteration
  std::vector<double> grad_norms;
  std::map<std::string, std::vector<float>> weights;  // whole tensors, by name
  uint64_t checksum = 0;
  // By rank: buckets in the order their gathers, and reductions, were issued.
  std::vector<std::vector<int>> gathers;
  std::vector<std::vector<int>> reductions;
  std::vector<int> buckets;              // by rank: how many there are
  int64_t exposed_gathers_of_rank0 = 0;  // that a reader waited for, all steps
};
absl::StatusOr<JobResult> RunJob(const JobSpec& spec);

// Equal bits of losses, norms and weights; a message for gtest otherwise.
std::string BitDifference(const JobResult& a, const JobResult& b);
// Losses and norms within 1e-5 relative, weights within the bounds of docs/numerics.md; key biases
// are left out.
std::string BoundDifference(const JobResult& a, const JobResult& b, const GptConfig& config);

// "" if each step issued every bucket once, on every rank.
std::string OncePerStepDifference(const JobResult& result, int64_t iterations);

}  // namespace forerun
