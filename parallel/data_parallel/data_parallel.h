// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "core/ops/op_context.h"
#include "parallel/comm/process_group.h"
#include "parallel/data_parallel/bucket_buffer.h"
#include "parallel/data_parallel/bucket_plan.h"
#include "parallel/data_parallel/cost_model.h"
#include "parallel/data_parallel/forward_order.h"
#include "parallel/data_parallel/forward_passes.h"
#include "parallel/data_parallel/grad_reducer.h"
#include "parallel/data_parallel/groups.h"
#include "parallel/data_parallel/order_watch.h"
#include "parallel/data_parallel/param_gate.h"
#include "parallel/data_parallel/transfer_log.h"

namespace forerun {

struct DataParallelOptions {
  bool shard_optimizer = true;  // --use-distributed-optimizer
  bool overlap_grad_reduce = true;
  bool overlap_param_gather = true;
  // --ddp-bucket-size; unset: what the cost model finds best
  absl::optional<int64_t> bucket_numel;
  // What that plans and predicts with. Unset: measured at set-up where bucket_numel is unset and
  // there are other data-parallel ranks; nominal where not.
  absl::optional<Costs> costs;
  int64_t gather_window_bytes = int64_t{256} << 20;  // ParamGate::Options
  bool poison_stale_params = false;
  ForwardOrderMode forward_order = ForwardOrderMode::kWarn;  // --forward-order
};

// One rank's data-parallel machinery, put together: graph -> plan -> buffer -> gate and reducer.
// The pieces are usable alone; this only spares their user the wiring.
class DataParallel {
 public:
  struct Chunk {
    absl::Span<const Parameter* const> parameters;
    ForwardOrderGraph graph;
  };

  // A collective call. Fails on every rank alike where ranks would plan differently, or from other
  // costs, naming the first difference. The context and the groups outlive the result.
  static absl::StatusOr<std::unique_ptr<DataParallel>> Create(const OpContext& context,
                                                              const DataParallelGroups& groups,
                                                              std::vector<Chunk> chunks,
                                                              const DataParallelOptions& options,
                                                              SecondsClock clock);

  const ForwardOrderGraph& graph(int chunk) const { return chunks_[chunk].graph; }
  const BucketPlan& plan() const { return plan_; }
  const Costs& costs() const { return costs_; }
  // What the plan's buckets will cost by these; in a group of one they cost nothing.
  const Prediction& prediction() const { return prediction_; }
  BucketBuffer& buffer() { return *buffer_; }
  ParamGate& gate() { return *gate_; }
  GradReducer& reducer() { return *reducer_; }
  ForwardPasses& forward_passes() { return *forward_passes_; }
  // Which shard of every bucket this rank updates.
  int shard() const { return shard_; }

 private:
  DataParallel(std::vector<Chunk> chunks, BucketPlan plan, const Costs& costs,
               Prediction prediction, int shard)
      : chunks_(std::move(chunks)),
        plan_(std::move(plan)),
        costs_(costs),
        prediction_(std::move(prediction)),
        shard_(shard) {}

  const std::vector<Chunk> chunks_;
  const BucketPlan plan_;
  const Costs costs_;
  const Prediction prediction_;
  const int shard_;
  std::unique_ptr<BucketBuffer> buffer_;
  std::unique_ptr<GradReducer> reducer_;
  std::unique_ptr<ParamGate> gate_;
  std::unique_ptr<ForwardPasses> forward_passes_;
};

// The bucket plan that Create makes, without memory or messages: for dry runs. Costs that are not
// given are nominal.
BucketPlan PlanBuckets(absl::Span<const DataParallel::Chunk> chunks, int data_parallel_size,
                       const DataParallelOptions& options);

}  // namespace forerun
