// SPDX-License-Identifier: Apache-2.0
#include "core/base/openmp.h"

namespace forerun::openmp {

void Run(int parts, absl::FunctionRef<void(int)> body) {
  for (int part = 0; part < parts; ++part) body(part);
}

void SetThreads(int) {}
int Threads() { return 1; }

}  // namespace forerun::openmp
