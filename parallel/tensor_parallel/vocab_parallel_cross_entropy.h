// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/autograd/context.h"
#include "core/autograd/tape.h"
#include "core/tensor/tensor.h"
#include "parallel/comm/process_group.h"

namespace forerun {

// Softmax cross entropy of every token, over a vocabulary whose columns are split evenly over the
// ranks of a group: logits [..., v / ranks] are this rank's columns, targets are int32 of the
// leading dims, and so is the result, fp32, the same on every rank. Columns at or after
// `vocab_size` of the whole pad it: probability and gradient zero. Only a maximum and two sums a
// token travel, never logits. Targets have no gradient. The group outlives the tape.
Value VocabParallelCrossEntropy(const ForwardContext& context, const Value& logits,
                                const Tensor& targets, int64_t vocab_size,
                                comm::ProcessGroup& group);

}  // namespace forerun
