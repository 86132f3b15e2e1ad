// SPDX-License-Identifier: Apache-2.0
#include "models/llama.h"

namespace forerun {

GptConfig TinyLlama() {
  return {.num_layers = 2,
          .hidden_size = 64,
          .ffn_hidden_size = 128,
          .num_attention_heads = 4,
          .num_query_groups = 2,
          .seq_length = 32,
          .vocab_size = 128,
          .padded_vocab_size = 128,
          .position_embedding = PositionEmbedding::kRope,
          .norm = NormKind::kRmsNorm,
          .swiglu = true,
          .add_bias_linear = false,
          .tied_embeddings = false};
}

}  // namespace forerun
