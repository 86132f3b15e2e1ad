// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "core/tensor/tensor.h"
#include "parallel/comm/process_group.h"

namespace forerun::comm {

// output[i] = the sum (or maximum) over ranks of inputs[rank][begin + i], in the order that
// process_group.h fixes: one binary tree, neighbours first, split at the largest power of two
// below n; 16-bit types are added in fp32 and rounded once; integers wrap around; a maximum is NaN
// where any value is. Contiguous tensors of one dtype; output may be that very range of one of the
// inputs.
void TreeReduce(absl::Span<const Tensor> inputs, int64_t begin, ReduceOp op, const Tensor& output);

}  // namespace forerun::comm
