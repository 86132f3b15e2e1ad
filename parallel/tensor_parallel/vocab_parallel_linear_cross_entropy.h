// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/autograd/context.h"
#include "core/autograd/parameter.h"
#include "core/autograd/tape.h"
#include "core/tensor/tensor.h"
#include "parallel/comm/process_group.h"

namespace forerun {

// VocabParallelCrossEntropy of Linear(x, table), in one: x [..., h], `table` [v / ranks, h] this
// rank's rows, int32 targets of the leading dims. What is the largest tensor of a small model, the
// logits, never lies in memory twice, and at most `kept_bytes` of it at all:
//  1. rows are taken in chunks whose logits fit; of all chunks, those of the last are kept for the
//     backward pass, and become their own gradient there; the others are computed again;
//  2. so a model whose logits fit does nothing twice, and a larger one trades a third of the head's
//     products for memory.
// Chunks depend on shapes alone. The table is read once; the lease lives until the weight gradient.
struct LinearCrossEntropyOptions {
  int64_t vocab_size = 0;  // columns at or after it, of the whole, pad
  int64_t kept_bytes = int64_t{256} << 20;
};
Value VocabParallelLinearCrossEntropy(const ForwardContext& context, const Value& x,
                                      const Parameter& table, const Tensor& targets,
                                      comm::ProcessGroup& group,
                                      const LinearCrossEntropyOptions& options,
                                      absl::string_view reader);

}  // namespace forerun
