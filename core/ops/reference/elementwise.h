// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/elementwise.h"

namespace forerun::reference {

// The oracle of //core/ops:elementwise: plain loops in double over elements of any floating dtype,
// strided at will. Results are rounded once, to their dtype.
const ElementwiseKernels& Elementwise();

}  // namespace forerun::reference
