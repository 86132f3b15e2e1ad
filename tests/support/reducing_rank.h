// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "core/ops/op_context.h"
#include "parallel/comm/process_group.h"
#include "parallel/data_parallel/bucket_buffer.h"
#include "parallel/data_parallel/bucket_plan.h"
#include "parallel/data_parallel/grad_reducer.h"

namespace forerun {

// One rank that reduces gradients whose sums are exact, without a model: a buffer and its reducer.
class ReducingRank {
 public:
  // Parameters, context and group outlive it. Shards: as many as the group has ranks.
  ReducingRank(std::vector<const Parameter*> first_use_order, int64_t bucket_numel,
               const OpContext& op, comm::ProcessGroup& group, const GradReducer::Options& options,
               SecondsClock clock);

  // All forward passes of a step; then all backward passes, the last parameter first, `compute`
  // before each contribution; then the optimizer's waits.
  void Step(int step, int microbatches, const std::function<void()>& compute = {});
  // Elements of the own shards that are not the sum over all ranks and microbatches of the step.
  int WrongSums(int step, int microbatches);
  // Buckets as they were issued, by the log.
  std::vector<int> TakeIssueOrder() { return BucketsOf(reducer_.log().TakeAllEvents()); }

  const BucketPlan& plan() const { return plan_; }
  GradReducer& reducer() { return reducer_; }

 private:
  void Contribute(const Parameter& parameter, int step, int microbatch);

  const OpContext& op_;
  comm::ProcessGroup& group_;
  const BucketPlan plan_;
  BucketBuffer buffer_;
  GradReducer reducer_;
};

}  // namespace forerun
