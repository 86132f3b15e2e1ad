// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/activation.h"

namespace forerun::cpu {

const ActivationKernels& Activation();

}  // namespace forerun::cpu
