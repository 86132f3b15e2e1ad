// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "bench/gather_driver.h"
#include "bench/sync_case.h"

namespace forerun {

// What one rank's step came to.
struct SyncResult {
  int exposed_gathers = 0;  // that somebody waited for
  double exposed_seconds = 0.0;
  double step_seconds = 0.0;  // update and forward pass
};

// The second step, in virtual time: one rank of two, over a fake group. Exact; a gather is exposed
// if anything waited.
SyncResult RunVirtual(const SyncCase& sync_case, GatherPolicy policy);

// Two ranks that are threads and sleep where they would compute, over local groups: the median of
// each figure of rank 0 over `steps` steps after the first. A gather is exposed if somebody waited
// for more than a tenth of its own time on the link.
absl::StatusOr<SyncResult> RunWall(const SyncCase& sync_case, GatherPolicy policy, int steps);

}  // namespace forerun
