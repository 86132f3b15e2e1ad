// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/ops/matmul.h"

namespace forerun::cpu {

// The matmul that the cpu's kernel table uses, chosen at link time: oneDNN, or the plain loops
// under ThreadSanitizer, which reports races inside oneDNN that are none.
const MatmulKernels& Matmul();

// Which one, and what of the processor it uses, in a few words: runs whose words are equal have
// equal bits.
std::string MatmulChoice();
// Whether products of bf16 are faster than those of fp32 here.
bool HasFastBFloat16();

}  // namespace forerun::cpu
