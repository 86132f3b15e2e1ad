// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"

// The one parallel loop of Forerun, on the OpenMP runtime that oneDNN uses (two runtimes in one
// process would fight for the cores). Serial where the build has no OpenMP (clang).
namespace forerun {

// Calls body(begin, end) on disjoint ranges that cover [0, count). Each range but the last is a
// multiple of `grain` long, and no thread is woken for less than one grain. The split depends on
// count, grain and the thread count only, so a body whose results do not cross ranges gives the
// same bits on every run. The body must not throw.
void ParallelFor(int64_t count, int64_t grain, absl::FunctionRef<void(int64_t, int64_t)> body);

// Threads that loops started by the calling thread may use, itself included. Each thread has a
// setting of its own: with ranks as threads every rank sets one.
void SetLoopThreads(int threads);
int LoopThreads();

}  // namespace forerun
