// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op_context.h"

namespace forerun::reference {

// The oracle of every backend: plain loops in double precision, on the cpu, one thread.
// Immutable, alive as long as the program, any thread.
const KernelTable& Kernels();

}  // namespace forerun::reference
