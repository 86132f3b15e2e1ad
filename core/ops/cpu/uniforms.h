// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/random/random.h"

namespace forerun::cpu {

// out[i] = UniformAt(key, begin + i) for i < count, many counters at a time in vector code.
void Uniforms(RandomKey key, uint64_t begin, int64_t count, float* out);

}  // namespace forerun::cpu
