// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/embedding.h"

namespace forerun::cpu {

const EmbeddingKernels& Embedding();

}  // namespace forerun::cpu
