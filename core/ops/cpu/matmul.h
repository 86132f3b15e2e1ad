// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/matmul.h"

namespace forerun::cpu {

// The matmul that the cpu's kernel table uses, chosen at link time: oneDNN, or the plain loops
// under ThreadSanitizer, which reports races inside oneDNN that are none.
const MatmulKernels& Matmul();

}  // namespace forerun::cpu
