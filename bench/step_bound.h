// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace forerun {

// What one training step has to do, in seconds: compute by itself, and each message alone on its
// link, in the order of issue.
struct StepWork {
  double forward = 0.0;
  double backward = 0.0;
  double update = 0.0;
  std::vector<double> gathers;
  std::vector<double> reductions;
};

// What a step is held against (DESIGN section 6): where overlap is perfect, whatever takes longer
// of compute and messages, and the two ends of the chain, which no order can hide:
//   max(forward, gathers) + max(backward, reductions) + update + first gather + last reduction
// Gathers that start under the update may beat it.
double BoundSeconds(const StepWork& work);

}  // namespace forerun
