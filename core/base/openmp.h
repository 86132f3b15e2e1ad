// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/functional/function_ref.h"

// What parallel_for needs of an OpenMP runtime. Chosen at link time: openmp.cc, or no_openmp.cc in
// builds without a runtime (clang and its sanitizers).
namespace forerun::openmp {

// Runs body(0) .. body(parts - 1), each on a thread of its own where there are enough.
void Run(int parts, absl::FunctionRef<void(int)> body);
void SetThreads(int threads);
int Threads();

}  // namespace forerun::openmp
