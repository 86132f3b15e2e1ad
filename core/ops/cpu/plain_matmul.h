// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/matmul.h"

namespace forerun::cpu {

// Blocked loops over the project's own BlockProduct: no library, nothing that ThreadSanitizer
// cannot see. Each element is one chain of fused multiply-adds in the order of k, so its bits
// depend on its row of op(a) and column of op(b) only: not on m, n, its place or the threads.
const MatmulKernels& PlainMatmul();

}  // namespace forerun::cpu
