// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op_context.h"

namespace forerun::cpu {

// The kernels of the cpu, for fp32, bf16 and fp16. They use the loop threads of the calling thread
// (core/base/parallel_for.h). Immutable, alive as long as the program, any thread.
const KernelTable& Kernels();

}  // namespace forerun::cpu
