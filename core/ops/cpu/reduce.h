// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/reduce.h"

namespace forerun::cpu {

const ReduceKernels& Reduce();

}  // namespace forerun::cpu
