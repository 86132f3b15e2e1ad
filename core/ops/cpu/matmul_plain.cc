// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/matmul.h"
#include "core/ops/cpu/plain_matmul.h"

namespace forerun::cpu {

const MatmulKernels& Matmul() { return PlainMatmul(); }
std::string MatmulChoice() { return "plain loops"; }
bool HasFastBFloat16() { return false; }

}  // namespace forerun::cpu
