// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/autograd/parameter.h"
#include "core/ops/op_context.h"
#include "optim/distributed_optimizer.h"
#include "optim/testing/state_map.h"
#include "parallel/comm/process_group.h"
#include "parallel/data_parallel/bucket_buffer.h"
#include "parallel/data_parallel/grad_reducer.h"
#include "parallel/data_parallel/param_gate.h"
#include "parallel/data_parallel/parameter_state.h"
#include "parallel/data_parallel/testing/rank_job.h"
#include "parallel/data_parallel/testing/test_parameters.h"

namespace forerun {

// The gradient of an element in a step, summed over all ranks.
using GradientSource = std::function<float(int step, const Parameter&, int64_t i)>;

// One rank of a data-parallel job that trains TestParameters on given gradients: buffer, gate,
// reducer and optimizer. Poison is on.
class OptimizerRank {
 public:
  struct Options {
    bool sharded = true;
    bool overlap = true;
    int64_t window_bytes = int64_t{1} << 20;  // of gathers
    OptimizerOptions optimizer;
    const KernelTable* kernels = nullptr;  // null: the rank's own
    // Which parameters the norm counts and Save saves; unset: all.
    std::function<bool(const Parameter&)> counts;
  };

  // A collective call. Starts from the initial values, or from `checkpoint`.
  OptimizerRank(const TestParameters& parameters, const RankContext& rank, const Options& options,
                const StateMap* checkpoint = nullptr);

  // One step. Ranks' gradients add up to `total`, exactly, as long as those are small multiples of
  // a power of two.
  absl::StatusOr<DistributedOptimizer::StepResult> Step(int step, const GradientSource& total);

  // The values of all parameters in first-use order, read through the gate.
  std::vector<std::vector<double>> Read();
  // Adds what this rank has to save to `checkpoint`.
  absl::Status Save(StateMap& checkpoint);

  ParamGate& gate() { return *gate_; }
  DistributedOptimizer& optimizer() { return *optimizer_; }
  const OpContext& op() const { return op_; }

 private:
  void Contribute(int step, const Parameter& parameter, const GradientSource& total);

  const TestParameters& parameters_;
  const int rank_;
  const int ranks_;
  OpContext op_;
  const std::unique_ptr<comm::ProcessGroup> gather_;  // of all ranks; not sharded: of this one
  const BucketPlan plan_;
  BucketBuffer buffer_;
  std::unique_ptr<GradReducer> reducer_;
  std::unique_ptr<ParamGate> gate_;
  std::unique_ptr<ParameterState> state_;
  std::unique_ptr<DistributedOptimizer> optimizer_;
};

}  // namespace forerun
