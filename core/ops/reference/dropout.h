// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/dropout.h"

namespace forerun::reference {

// The oracle of //core/ops:dropout: plain loops in double over elements of any floating dtype, strided
// at will. Results are rounded once, to their dtype.
const DropoutKernels& Dropout();

}  // namespace forerun::reference
