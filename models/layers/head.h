// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/autograd/context.h"
#include "core/autograd/parameter.h"
#include "core/autograd/tape.h"
#include "core/nn/registry.h"
#include "core/tensor/tensor.h"
#include "models/config.h"
#include "models/layers/norm.h"
#include "parallel/comm/process_group.h"

namespace forerun {

// The end of a model: final norm, a projection onto the vocabulary whose rows are split over
// tensor-parallel ranks, cross entropy. The projection's table is
//   output.weight,                      untied;
//   the chunk's own word embedding,     tied, where both are on one chunk;
//   a copy of it, under its name,       tied, where they are on different chunks.
class OutputHead {
 public:
  // `word_table`: the word embedding of the same chunk, null where it has none.
  OutputHead(ParameterRegistry& registry, const GptConfig& config, comm::ProcessGroup& group,
             const Parameter* word_table);

  // x [s, b, hidden] -> [s, b, padded vocabulary / ranks].
  Value Logits(const ForwardContext& context, const Value& x) const;

  // Mean over the tokens of targets [s, b], fp32, one element.
  Value Loss(const ForwardContext& context, const Value& x, const Tensor& targets) const;

 private:
  Value Normed(const ForwardContext& context, const Value& x) const;

  comm::ProcessGroup* const group_;
  const int64_t vocab_size_;
  const Norm final_norm_;
  const Parameter* const table_;
};

}  // namespace forerun
