// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/matmul.h"
#include "core/ops/cpu/onednn_matmul.h"

namespace forerun::cpu {

const MatmulKernels& Matmul() { return OneDnnMatmul(); }
std::string MatmulChoice() { return OneDnnChoice(); }
bool HasFastBFloat16() { return OneDnnMultipliesBFloat16(); }

}  // namespace forerun::cpu
