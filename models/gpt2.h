// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/config.h"

// Models of the GPT-2 family (Radford et al. 2019): learned positions, LayerNorm, linear layers
// with biases, GELU in its tanh form.
namespace forerun {

// Four layers, 64 wide, untied: small enough for any test, with every kind of parameter.
GptConfig TinyGpt2();

// The smallest published one, 124M parameters.
GptConfig Gpt2_124M();

}  // namespace forerun
