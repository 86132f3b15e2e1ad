// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/dropout.h"

namespace forerun::cpu {

const DropoutKernels& Dropout();

}  // namespace forerun::cpu
