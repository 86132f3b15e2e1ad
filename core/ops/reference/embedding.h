// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/embedding.h"

namespace forerun::reference {

// The oracle of //core/ops:embedding: plain loops in double over elements of any floating dtype, strided
// at will. Results are rounded once, to their dtype.
const EmbeddingKernels& Embedding();

}  // namespace forerun::reference
