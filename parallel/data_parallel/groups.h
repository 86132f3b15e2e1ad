// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "parallel/comm/process_group.h"

namespace forerun {

// The groups that one rank's data parallelism talks over. `gather` has the data-parallel ranks
// where the optimizer is sharded, and is a group of one where it is not: then every rank updates
// everything and there is nothing to gather.
struct DataParallelGroups {
  comm::ProcessGroup* reduce = nullptr;
  comm::ProcessGroup* gather = nullptr;
  comm::ProcessGroup* tensor_parallel = nullptr;  // to agree on the plan with
};

}  // namespace forerun
