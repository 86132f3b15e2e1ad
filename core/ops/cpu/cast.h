// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/cast.h"

namespace forerun::cpu {

const CastKernels& Cast();

}  // namespace forerun::cpu
