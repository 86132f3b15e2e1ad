// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/ops/matmul.h"

namespace forerun::cpu {

// Matmul by oneDNN, on as many threads as the caller's loops (core/base/parallel_for.h). For equal
// shapes, strides and threads the bits are equal; across those oneDNN promises nothing.
//
// fp16 goes through fp32, and so does bf16 on processors without bf16 products, where oneDNN would
// imitate them at a third of the fp32 speed. Products of 16-bit values are exact in fp32, so the
// numbers are as good either way.
const MatmulKernels& OneDnnMatmul();

std::string OneDnnChoice();  // "oneDNN 2.6.3 for avx512_core, bf16 through fp32"
bool OneDnnMultipliesBFloat16();

}  // namespace forerun::cpu
