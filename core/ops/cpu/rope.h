// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/rope.h"

namespace forerun::cpu {

const RopeKernels& Rope();

}  // namespace forerun::cpu
