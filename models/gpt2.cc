// SPDX-License-Identifier: Apache-2.0
#include "models/gpt2.h"

namespace forerun {

GptConfig TinyGpt2() {
  return {.num_layers = 4,
          .hidden_size = 64,
          .ffn_hidden_size = 128,
          .num_attention_heads = 4,
          .num_query_groups = 4,
          .seq_length = 32,
          .max_position_embeddings = 32,
          .vocab_size = 128,
          .padded_vocab_size = 128,
          .tied_embeddings = false};
}

GptConfig Gpt2_124M() {
  return {.num_layers = 12,
          .hidden_size = 768,
          .ffn_hidden_size = 4 * 768,
          .num_attention_heads = 12,
          .num_query_groups = 12,
          .seq_length = 1024,
          .max_position_embeddings = 1024,
          .vocab_size = 50257,
          .padded_vocab_size = PaddedVocabSize(50257, 128, 1)};
}

}  // namespace forerun
