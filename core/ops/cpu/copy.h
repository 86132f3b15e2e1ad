// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/copy.h"

namespace forerun::cpu {

const CopyKernels& Copy();

}  // namespace forerun::cpu
