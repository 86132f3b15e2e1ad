// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/cross_entropy.h"

namespace forerun::reference {

// The oracle of //core/ops:cross_entropy: plain loops in double over elements of any floating dtype, strided
// at will. Results are rounded once, to their dtype.
const CrossEntropyKernels& CrossEntropy();

}  // namespace forerun::reference
