// SPDX-License-Identifier: Apache-2.0
#include "models/layers/embedding.h"

#include "core/autograd/functions.h"
#include "core/nn/functions.h"

namespace forerun {
namespace {

const Parameter* DeclarePositions(ParameterRegistry& registry, const GptConfig& config) {
  if (config.position_embedding != PositionEmbedding::kLearned) return nullptr;
  const Shape shape = {config.max_position_embeddings, config.hidden_size};
  return &registry.Declare({.name = "embedding.position_embeddings.weight",
                            .global_shape = shape,
                            .box = Box::Whole(shape),
                            .dtype = config.dtype},
                           Init::Normal(config.init_method_std));
}

}  // namespace

EmbeddingLayer::EmbeddingLayer(ParameterRegistry& registry, const GptConfig& config,
                               comm::ProcessGroup& group, Sharing sharing)
    : dropout_(config.hidden_dropout),
      hidden_size_(config.hidden_size),
      word_(registry, group,
            {.name = "embedding.word_embeddings",
             .vocab_size = config.vocab_size,
             .padded_vocab_size = config.padded_vocab_size,
             .hidden_size = config.hidden_size,
             .dtype = config.dtype,
             .init = Init::Normal(config.init_method_std),
             .sharing = sharing}),
      position_(DeclarePositions(registry, config)) {}

Value EmbeddingLayer::Forward(const ForwardContext& context, const Tensor& tokens) const {
  Value x = word_.Forward(context, tokens);
  if (position_ != nullptr) {
    x = AddPositions(context, x, *position_, "embedding.position_embeddings");
  }
  return Dropout(context, x, {.site = "embedding", .p = dropout_, .total_width = hidden_size_});
}

}  // namespace forerun
