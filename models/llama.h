// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/config.h"

// Models of the Llama family (Touvron et al. 2023): rotary positions, RMSNorm, SwiGLU, grouped
// queries, no biases.
namespace forerun {

// Two layers, 64 wide, two key and value heads for four query heads.
GptConfig TinyLlama();

}  // namespace forerun
