// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ops/op_context.h"
#include "core/tensor/stateful.h"
#include "optim/adamw.h"
#include "optim/shard_arithmetic.h"
#include "parallel/comm/process_group.h"
#include "parallel/data_parallel/bucket_buffer.h"
#include "parallel/data_parallel/grad_reducer.h"
#include "parallel/data_parallel/param_gate.h"

namespace forerun {

struct OptimizerOptions {
  AdamWOptions adamw;
  double weight_decay = 0.01;  // of parameters that take it
  double clip_grad = 1.0;      // global norm; 0: no clipping
};

// What of the world the optimizer needs to know. Groups and functions outlive it.
struct OptimizerPlacement {
  comm::ProcessGroup* world = nullptr;      // the global norm is summed over it
  comm::ProcessGroup* embedding = nullptr;  // stages that hold copies of shared parameters
  // Whether this rank's elements of a parameter count in the global norm, and are saved: over all
  // ranks each element is counted once (replicas over tensor parallelism, copies on other stages,
  // and data-parallel replicas where the optimizer is not sharded are not).
  std::function<bool(const Parameter&)> owns;
};

// AdamW over this rank's shard of every bucket (ZeRO stage 1; with a plan of one shard: of all).
//
// One step
//  1. waits for each bucket's reduction; sums over the embedding group what stages share;
//  2. takes part in the global norm: exact integer sums of 64-element blocks (exact_sum.h), so the
//     bits depend on no shard, bucket or overlap; a norm that is not finite ends the step here, no
//     version advanced, nothing changed;
//  3. for each bucket in forward order: accept, AdamW on the shard, publish: the bucket's gather
//     starts at once, under the update of the next.
//
// fp32 parameters: the own shard of the buffer is the master copy. 16-bit parameters: an fp32
// master shard is kept, and its rounding is published. Moments are fp32.
// Used by the compute thread. A collective call over the world and the embedding group.
class DistributedOptimizer final : public Stateful {
 public:
  // Buffer contents are final: masters are taken from them.
  DistributedOptimizer(const OpContext& context, ShardWriter writer, GradReducer& reducer,
                       ParamGate& gate, OptimizerPlacement placement,
                       const OptimizerOptions& options);

  struct StepResult {
    double grad_norm = 0.0;  // before clipping; not finite: nothing was updated
    bool updated = false;
  };
  // Fails where a lease is alive. Throws comm::GroupError.
  absl::StatusOr<StepResult> Step(double lr);

  // Moments, and masters of 16-bit parameters, named "optimizer.<what>.<parameter>", and the number
  // of updates, "optimizer.step".
  absl::Status Save(absl::FunctionRef<absl::Status(const StatePiece&)> save) override;
  absl::Status Load(absl::FunctionRef<absl::Status(const StatePiece&)> load) override;

 private:
  // fp32, shard_numel elements each.
  struct BucketState {
    Tensor master;  // undefined for fp32 buckets
    Tensor exp_avg;
    Tensor exp_avg_sq;
  };

  void ReduceShared();
  double GlobalNorm();
  void Update(int bucket, double lr, float grad_scale);
  absl::Status VisitShards(bool only_owned,
                           absl::FunctionRef<absl::Status(const StatePiece&)> visit);

  const OpContext& context_;
  const ShardArithmetic& arithmetic_;
  const ShardWriter writer_;
  GradReducer& reducer_;
  ParamGate& gate_;
  const OptimizerPlacement placement_;
  const OptimizerOptions options_;
  std::vector<BucketState> states_;
  int64_t updates_ = 0;  // of these moments, in earlier runs too
};

}  // namespace forerun
