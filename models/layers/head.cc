// SPDX-License-Identifier: Apache-2.0
#include "models/layers/head.h"

#include "core/autograd/functions.h"
#include "core/nn/functions.h"
#include "parallel/tensor_parallel/regions.h"
#include "parallel/tensor_parallel/split.h"
#include "parallel/tensor_parallel/vocab_parallel_linear_cross_entropy.h"

namespace forerun {
namespace {

const Parameter* ChooseTable(ParameterRegistry& registry, const GptConfig& config,
                             comm::ProcessGroup& group, const Parameter* word_table) {
  const bool tied = config.tied_embeddings;
  if (tied && word_table != nullptr) return word_table;
  const Shape shape = {config.padded_vocab_size, config.hidden_size};
  return &registry.Declare({.name = tied ? "embedding.word_embeddings.weight" : "output.weight",
                            .global_shape = shape,
                            .box = SplitBox(shape, 0, group),
                            .padding_rows = config.padded_vocab_size - config.vocab_size,
                            .dtype = config.dtype,
                            .sharing = tied ? Sharing::kCopy : Sharing::kNone},
                           Init::Normal(config.init_method_std));
}

}  // namespace

OutputHead::OutputHead(ParameterRegistry& registry, const GptConfig& config,
                       comm::ProcessGroup& group, const Parameter* word_table)
    : group_(&group),
      vocab_size_(config.vocab_size),
      final_norm_(registry, config, config.norm, "final_norm"),
      table_(ChooseTable(registry, config, group, word_table)) {}

Value OutputHead::Normed(const ForwardContext& context, const Value& x) const {
  return CopyToRegion(context, final_norm_.Forward(context, x), *group_);
}

Value OutputHead::Logits(const ForwardContext& context, const Value& x) const {
  return Linear(context, Normed(context, x), *table_, nullptr, "output");
}

Value OutputHead::Loss(const ForwardContext& context, const Value& x, const Tensor& targets) const {
  const Value losses =
      VocabParallelLinearCrossEntropy(context, Normed(context, x), *table_, targets, *group_,
                                      {.vocab_size = vocab_size_}, "output");
  return ScaledMean(context, losses, 1.0f);
}

}  // namespace forerun
