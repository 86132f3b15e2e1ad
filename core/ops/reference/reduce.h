// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/reduce.h"

namespace forerun::reference {

// The oracle of //core/ops:reduce: plain loops in double over elements of any floating dtype,
// strided at will. Results are rounded once, to their dtype.
const ReduceKernels& Reduce();

}  // namespace forerun::reference
