// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Loops over runs of floats that cost more arithmetic than memory, compiled for several instruction
// sets, of which the widest that the processor has is taken at run time. An element's result
// depends on no vector length. A result may overwrite an operand in place.
namespace forerun::cpu {

// y = exp(x - below)
void ExpBelowRun(int64_t n, float* y, const float* x, float below);

// y = gelu(x) and dx = dy gelu'(x), in the form with tanh.
void GeluTanhRun(int64_t n, float* y, const float* x);
void GeluTanhBackwardRun(int64_t n, float* dx, const float* x, const float* dy);

}  // namespace forerun::cpu
