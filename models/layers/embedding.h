// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/autograd/context.h"
#include "core/autograd/parameter.h"
#include "core/autograd/tape.h"
#include "core/nn/registry.h"
#include "core/tensor/tensor.h"
#include "models/config.h"
#include "parallel/comm/process_group.h"
#include "parallel/tensor_parallel/vocab_parallel_embedding.h"

namespace forerun {

// x = dropout(word[token] + position[row]); without the position table for rotary models.
// Parameters: embedding.word_embeddings.weight [padded vocabulary, hidden], split by rows, and
// embedding.position_embeddings.weight [max positions, hidden], whole on every rank.
class EmbeddingLayer {
 public:
  // `sharing` is that of the word table.
  EmbeddingLayer(ParameterRegistry& registry, const GptConfig& config, comm::ProcessGroup& group,
                 Sharing sharing);

  // tokens int32 [s, b] -> [s, b, hidden].
  Value Forward(const ForwardContext& context, const Tensor& tokens) const;

  const Parameter& word_table() const { return word_.weight(); }

 private:
  const float dropout_;
  const int64_t hidden_size_;
  const VocabParallelEmbedding word_;
  const Parameter* const position_;  // null: none
};

}  // namespace forerun
