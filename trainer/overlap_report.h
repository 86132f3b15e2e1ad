// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "parallel/data_parallel/bucket_plan.h"
#include "parallel/data_parallel/transfer_log.h"

namespace forerun {

// A table, one line a bucket, of what its messages cost a rank over `steps` steps: bytes, how long
// gathers were in flight, how often a reader had to wait and for how long, the same for
// reductions, and who waited first. Times are milliseconds a step. The last line is the sum.
std::string OverlapReport(const BucketPlan& plan, const std::vector<TransferRecord>& gathers,
                          const std::vector<TransferRecord>& reductions, int64_t steps);

}  // namespace forerun
