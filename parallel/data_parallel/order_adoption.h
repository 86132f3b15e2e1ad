// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "core/autograd/parameter.h"
#include "core/ops/op_context.h"
#include "parallel/comm/process_group.h"
#include "parallel/data_parallel/bucket_plan.h"

namespace forerun {

// The order of buckets that follows from reads: by the first read of one of their parameters, then
// those that nothing read, in their present order.
std::vector<int> BucketOrderOf(absl::Span<const Parameter* const> reads, const BucketPlan& plan,
                               absl::Span<const int> present);

// Decides when the issue order changes: when every rank of a group has seen one and the same new
// order at the end of so many steps running. An order that alternates is never adopted, so nothing
// thrashes. Belongs to the compute thread.
class OrderAdoption {
 public:
  // The group outlives it. `steps` is at least 1.
  OrderAdoption(comm::ProcessGroup& group, int steps) : group_(group), steps_(steps) {}

  // A collective call, once a step. `seen` is what this rank's reads suggest. Returns the order to
  // adopt now, the same on every rank. Throws comm::GroupError. Cost: one maximum of three numbers.
  absl::optional<std::vector<int>> OnStep(const OpContext& context, std::vector<int> seen,
                                          absl::Span<const int> present);

 private:
  comm::ProcessGroup& group_;
  const int steps_;
  std::vector<int> candidate_;
  int seen_running_ = 0;  // steps that ended with the candidate
};

}  // namespace forerun
