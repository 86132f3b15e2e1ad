// SPDX-License-Identifier: Apache-2.0
#include "core/base/openmp.h"

#include <omp.h>

namespace forerun::openmp {

void Run(int parts, absl::FunctionRef<void(int)> body) {
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part) body(part);
}

void SetThreads(int threads) { omp_set_num_threads(threads); }
int Threads() { return omp_get_max_threads(); }

}  // namespace forerun::openmp
