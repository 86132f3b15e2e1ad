// SPDX-License-Identifier: Apache-2.0
#include "models/recompute_plan.h"

#include <algorithm>

#include "core/base/check.h"

namespace forerun {

std::vector<LayerSegment> SegmentsOf(int layers, const RecomputePlan& plan) {
  using Method = RecomputePlan::Method;
  FR_CHECK_GE(plan.num_layers, 1) << "layers that are recomputed together";
  const bool uniform = plan.method == Method::kUniform;
  const int length = uniform ? plan.num_layers : 1;
  const int recomputed = uniform                         ? layers
                         : plan.method == Method::kBlock ? std::min(plan.num_layers, layers)
                                                         : 0;
  std::vector<LayerSegment> segments;
  for (int begin = 0; begin < recomputed; begin += length) {
    segments.push_back({{begin, std::min(begin + length, recomputed)}, true});
  }
  if (recomputed < layers) segments.push_back({{recomputed, layers}, false});
  return segments;
}

}  // namespace forerun
