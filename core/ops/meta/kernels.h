// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op_context.h"

namespace forerun::meta {

// Kernels of the meta device. They touch nothing: shapes, checks and allocation are the business
// of the free functions in core/ops, which are the same on every device. So a model's own Forward
// and Backward run on meta tensors and tell what they would read, write and allocate.
//
// Immutable, alive as long as the program, any thread.
const KernelTable& Kernels();

}  // namespace forerun::meta
