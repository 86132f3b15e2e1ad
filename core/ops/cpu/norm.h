// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/norm.h"

namespace forerun::cpu {

const NormKernels& Norm();

}  // namespace forerun::cpu
