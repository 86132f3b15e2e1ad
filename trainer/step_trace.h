// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/data_parallel/transfer_log.h"
#include "parallel/pipeline/executor.h"

namespace forerun {

// What one rank did in one training step, in seconds of the rank's clock, and which bucket messages
// have become complete since the step before (a gather is, once its bucket was read: those of a
// step come with the next one).
struct StepTrace {
  int64_t iteration = 0;
  std::vector<pipeline::ActionRecord> actions;
  double update_begin = 0.0;  // the optimizer's part, its waiting for reductions included
  double update_end = 0.0;
  std::vector<TransferEvent> gathers;
  std::vector<TransferEvent> reductions;
};

}  // namespace forerun
