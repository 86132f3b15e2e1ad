// SPDX-License-Identifier: Apache-2.0
#include "bench/step_bound.h"

#include <algorithm>
#include <numeric>

namespace forerun {
namespace {

double Sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

double BoundSeconds(const StepWork& work) {
  const double first_gather = work.gathers.empty() ? 0.0 : work.gathers.front();
  const double last_reduction = work.reductions.empty() ? 0.0 : work.reductions.back();
  return std::max(work.forward, Sum(work.gathers)) + std::max(work.backward, Sum(work.reductions)) +
         work.update + first_gather + last_reduction;
}

}  // namespace forerun
