// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/cross_entropy.h"

namespace forerun::cpu {

const CrossEntropyKernels& CrossEntropy();

}  // namespace forerun::cpu
