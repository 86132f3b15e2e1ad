// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/matmul.h"

namespace forerun::reference {

// The oracle of //core/ops:matmul: plain loops in double over elements of any floating dtype, strided
// at will. Results are rounded once, to their dtype.
const MatmulKernels& Matmul();

}  // namespace forerun::reference
