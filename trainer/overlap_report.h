// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/data_parallel/bucket_plan.h"
#include "parallel/data_parallel/cost_model.h"
#include "parallel/data_parallel/transfer_log.h"

namespace forerun {

// What a rank's bucket messages were planned to cost and did, over `steps` steps.
struct OverlapFigures {
  const BucketPlan& plan;
  const Costs& costs;
  const Prediction prediction;
  std::vector<TransferRecord> gathers;  // by bucket
  std::vector<TransferRecord> reductions;
  int64_t steps = 1;
};

// A table, one line a bucket: bytes, how long its gather and its reduction took, how often and how
// long compute was blocked on them, each with what the cost model predicts in brackets, and who
// waited first. Times are milliseconds a step. The last line is the sum; then the prices that the
// prediction was made with and, where communication exceeds compute by them, that it does.
std::string OverlapReport(const OverlapFigures& figures);

}  // namespace forerun
