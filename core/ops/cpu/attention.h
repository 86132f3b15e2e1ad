// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/attention.h"

namespace forerun::cpu {

const AttentionKernels& Attention();

}  // namespace forerun::cpu
