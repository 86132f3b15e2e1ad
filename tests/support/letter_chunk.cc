// SPDX-License-Identifier: Apache-2.0
#include "tests/support/letter_chunk.h"

#include <cctype>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "core/autograd/functions.h"
#include "core/autograd/recompute.h"
#include "core/nn/functions.h"
#include "parallel/tensor_parallel/vocab_parallel_cross_entropy.h"

namespace forerun {

LetterChunk::LetterChunk(LetterModel model, comm::ProcessGroup& group, int rank)
    : model_(std::move(model)), group_(group), rank_(rank) {
  table_ = &Declare("table", {kVocabulary, kHidden}, ParameterKind::kTrainable);
  for (char layer : model_.registered) {
    const ParameterKind kind = absl::StrContains(model_.optional, layer) ? ParameterKind::kOptional
                               : absl::StrContains(model_.frozen, layer)
                                   ? ParameterKind::kFrozen
                                   : ParameterKind::kTrainable;
    layers_[layer] = &Declare(std::string(1, layer), {kHidden, kHidden}, kind);
  }
}

const Parameter& LetterChunk::Declare(const std::string& name, const Shape& shape,
                                      ParameterKind kind) {
  ParameterSpec spec;
  spec.name = name;
  spec.global_shape = shape;
  spec.box = Box::Whole(shape);
  spec.kind = kind;
  return registry_.Declare(spec, Init::Normal(0.1));
}

Value LetterChunk::Forward(const ForwardContext& context, const Value&,
                           const Microbatch& microbatch) const {
  const bool recorded = microbatch.tokens.is_meta();
  if (context.tape != nullptr && !recorded) ++passes_;
  const Value logits = Logits(context, {}, microbatch.tokens);
  const Value losses =
      VocabParallelCrossEntropy(context, logits, microbatch.targets, kVocabulary, group_);
  return ScaledMean(context, losses, 1.0f);
}

Value LetterChunk::RunLayers(const ForwardContext& context, const Value& input,
                             const std::string& path) const {
  Value x = input;
  for (char step : path) {
    const Parameter& weight = *layers_.at(static_cast<char>(std::toupper(step)));
    const bool borrows = std::islower(step) != 0;
    const std::string reader = borrows ? "borrower of " + weight.name() : weight.name();
    const Value y = borrows ? Linear(context, x, weight, nullptr, reader)
                            : LinearGelu(context, x, weight, nullptr, GeluKind::kTanh, reader);
    x = Add(context, x, y);
  }
  return x;
}

Value LetterChunk::Logits(const ForwardContext& context, const Value&, const Tensor& tokens) const {
  const std::string path = model_.path ? model_.path(passes_, rank_) : model_.registered;
  Value x = Embedding(context, tokens, *table_, 0, "embedding");
  const size_t length = model_.segment == 0 ? path.size() : model_.segment;
  for (size_t begin = 0; begin < path.size(); begin += length) {
    const auto run = [this, part = path.substr(begin, length)](const ForwardContext& inner,
                                                               const Value& input) {
      return RunLayers(inner, input, part);
    };
    x = model_.segment == 0 ? run(context, x) : Recompute(context, x, run);
  }
  return Linear(context, x, *table_, nullptr, "head");
}

ChunkFactory MakeLetterChunk(LetterModel model) {
  return [model](const ParallelContext& parallel) {
    return std::make_unique<LetterChunk>(model, parallel.tensor(), parallel.at().dp);
  };
}

}  // namespace forerun
