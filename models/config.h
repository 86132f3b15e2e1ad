// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/ops/activation.h"
#include "core/tensor/dtype.h"

namespace forerun {

enum class PositionEmbedding : uint8_t { kLearned, kRope };
enum class NormKind : uint8_t { kLayerNorm, kRmsNorm };

// How many layers the first and the last pipeline stage hold, which have the embedding and the head
// beside them. 0: a share like the others'.
struct EndStages {
  int first = 0;
  int last = 0;

  bool operator==(const EndStages&) const = default;
};

// A decoder-only transformer with pre-norm residual layers: the GPT-2 and Llama families and what
// lies between. Defaults are GPT-2's; names are Megatron-LM's.
struct GptConfig {
  int num_layers = 0;
  int64_t hidden_size = 0;
  int64_t ffn_hidden_size = 0;
  int64_t num_attention_heads = 0;  // query heads
  int64_t num_query_groups = 0;     // key and value heads; equal to the query heads: no grouping
  int64_t seq_length = 0;           // of a training sample
  int64_t max_position_embeddings = 0;  // rows of the learned position table
  int64_t vocab_size = 0;               // tokens that exist
  int64_t padded_vocab_size = 0;        // rows of the embedding, the rest are never hit

  PositionEmbedding position_embedding = PositionEmbedding::kLearned;
  double rotary_base = 10000.0;
  NormKind norm = NormKind::kLayerNorm;
  float norm_epsilon = 1e-5f;
  bool swiglu = false;  // otherwise gelu
  GeluKind gelu = GeluKind::kTanh;
  bool add_bias_linear = true;
  bool tied_embeddings = true;  // the output projection is the word embedding
  // RMSNorms after the attention's and the MLP's output, before each is added to the residual
  // stream. They are registered last in their layer, though they run in its middle (Megatron-LM
  // issue 1292).
  bool post_sublayer_norms = false;
  float attention_dropout = 0.0f;
  float hidden_dropout = 0.0f;
  double init_method_std = 0.02;
  DType dtype = DType::kF32;  // of weights and activations
  EndStages end_stages;       // of the layout, not of the model

  int64_t head_dim() const { return hidden_size / num_attention_heads; }
  int64_t queries_per_group() const { return num_attention_heads / num_query_groups; }
  // Deviation of the projections that write to the residual stream: std / sqrt(2 layers).
  double output_init_std() const { return init_method_std / std::sqrt(2.0 * num_layers); }

  // One sentence about the first thing that is wrong.
  absl::Status Validate() const;
  // Whether the model can be split over this many tensor-parallel ranks and pipeline stages.
  absl::Status ValidateSplit(int tensor_parallel_size, int stages) const;

  // Elements of all trainable parameters, a shared one once, and the vocabulary's padding not at
  // all, so that the number belongs to the model and not to its layout.
  int64_t ParameterCount() const;
};

// The vocabulary rounded up to a multiple of divisor * tensor_parallel_size, as Megatron-LM pads.
int64_t PaddedVocabSize(int64_t vocab_size, int64_t divisor, int tensor_parallel_size);

// The layers [begin, end) of one stage.
struct LayerRange {
  int begin = 0;
  int end = 0;

  int size() const { return end - begin; }
  bool operator==(const LayerRange&) const = default;
};

// Deals layers to stages, in order, each to exactly one: to the ends what they ask for, the rest
// evenly; where that does not come out even, the first stages have one more. With several chunks a
// stage, stages here are all chunks of the pipeline in forward order. A stage without a layer is
// refused.
absl::StatusOr<LayerRange> LayersOfStage(int num_layers, int stages, int stage,
                                         EndStages ends = {});

}  // namespace forerun
