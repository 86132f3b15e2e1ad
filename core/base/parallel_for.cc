// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel_for.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/openmp.h"

namespace forerun {

void ParallelFor(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body) {
  FR_CHECK_GE(grain, 1) << "grain of a parallel loop";
  if (count <= 0) return;
  const int64_t grains = (count + grain - 1) / grain;
  const int64_t parts = std::min<int64_t>(grains, LoopThreads());
  if (parts <= 1) return body(0, count);
  openmp::Run(static_cast<int>(parts), [&](int part) {
    const int64_t begin = part * grains / parts * grain;
    const int64_t end = std::min(count, (part + 1) * grains / parts * grain);
    body(begin, end);
  });
}

void SetLoopThreads(int threads) { openmp::SetThreads(threads); }
int LoopThreads() { return openmp::Threads(); }

}  // namespace forerun
