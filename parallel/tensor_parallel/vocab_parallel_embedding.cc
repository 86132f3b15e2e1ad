// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/vocab_parallel_embedding.h"

#include "absl/strings/str_cat.h"
#include "core/nn/functions.h"
#include "parallel/tensor_parallel/regions.h"
#include "parallel/tensor_parallel/split.h"

namespace forerun {
namespace {

const Parameter& DeclareTable(ParameterRegistry& registry, comm::ProcessGroup& group,
                              const VocabParallelEmbeddingSpec& spec) {
  const Shape global = {spec.padded_vocab_size, spec.hidden_size};
  return registry.Declare({.name = absl::StrCat(spec.name, ".weight"),
                           .global_shape = global,
                           .box = SplitBox(global, 0, group),
                           .padding_rows = spec.padded_vocab_size - spec.vocab_size,
                           .dtype = spec.dtype,
                           .sharing = spec.sharing},
                          spec.init);
}

}  // namespace

VocabParallelEmbedding::VocabParallelEmbedding(ParameterRegistry& registry,
                                               comm::ProcessGroup& group,
                                               const VocabParallelEmbeddingSpec& spec)
    : name_(spec.name), group_(&group), weight_(&DeclareTable(registry, group, spec)) {}

Value VocabParallelEmbedding::Forward(const ForwardContext& context, const Tensor& tokens) const {
  const int64_t first_row = weight_->box().offset[0];
  return ReduceFromRegion(context, Embedding(context, tokens, *weight_, first_row, name_), *group_);
}

}  // namespace forerun
