// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/nn/registry.h"
#include "core/ops/op_context.h"
#include "parallel/comm/process_group.h"
#include "parallel/data_parallel/bucket_buffer.h"
#include "parallel/data_parallel/bucket_plan.h"
#include "parallel/data_parallel/grad_reducer.h"
#include "parallel/data_parallel/param_gate.h"
#include "parallel/data_parallel/transfer_log.h"

namespace forerun {

// Gate and reducer of one data-parallel rank over the plainest model there is: layers that run one
// after the other, each with one parameter, which is one bucket. Planned as any model: from a
// recorded forward order, whatever the order of registration. For tests and benches of what
// messages cost.
class LayeredRank {
 public:
  struct Layers {
    std::vector<int64_t> numel;     // by layer, in forward order
    std::vector<int> registration;  // the layer that was registered first, second, ...
  };

  // Context, group and clock outlive it. `overlap`: of gathers and of reductions.
  LayeredRank(const Layers& layers, const OpContext& op, comm::ProcessGroup& group, bool overlap,
              const SecondsClock& clock);

  int layers() const { return static_cast<int>(parameters_.size()); }
  ParamGate& gate() { return *gate_; }
  GradReducer& reducer() { return *reducer_; }
  const BucketPlan& plan() const { return *plan_; }
  // A layer's only parameter and bucket.
  const Parameter& parameter(int layer) const { return *parameters_[layer]; }
  int bucket(int layer) const { return plan_->BucketsOf(plan_->IndexOf(parameter(layer)))[0]; }

 private:
  ParameterRegistry registry_;
  std::vector<const Parameter*> parameters_;  // by layer
  std::unique_ptr<BucketPlan> plan_;
  std::unique_ptr<BucketBuffer> buffer_;
  std::unique_ptr<GradReducer> reducer_;
  std::unique_ptr<ParamGate> gate_;
};

}  // namespace forerun
