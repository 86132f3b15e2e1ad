// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/elementwise.h"

namespace forerun::cpu {

const ElementwiseKernels& Elementwise();

}  // namespace forerun::cpu
