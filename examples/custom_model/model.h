// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/autograd/functions.h"
#include "core/nn/functions.h"
#include "models/chunk.h"
#include "parallel/tensor_parallel/column_parallel_linear.h"
#include "parallel/tensor_parallel/row_parallel_linear.h"
#include "parallel/tensor_parallel/vocab_parallel_cross_entropy.h"
#include "parallel/topology/parallel_context.h"

namespace mixer {
using namespace forerun;  // NOLINT: a user's code

// A model of one's own, split over tensor-parallel ranks and pipeline stages. A layer is
//   x + fc2(gelu(fc1(norm(x mix^T))))
// where `mix` is borrowed from the stage's next layer before that one runs (by the last, from the
// first). Norms are registered last. Neither needs care: the order of reads is recorded.
class MixerChunk final : public ModelChunk {
 public:
  static constexpr int64_t kVocab = 128, kHidden = 32, kLayers = 4;

  explicit MixerChunk(const ParallelContext& parallel) : self_(parallel.self()) {
    const int64_t here = kLayers / parallel.grid().pp_size();
    if (parallel.first_stage()) table_ = &Declare("table", {kVocab, kHidden}, Init::Normal(0.1));
    for (int64_t i = here * parallel.at().pp; i < here * (parallel.at().pp + 1); ++i) {
      const std::string name = "layers." + std::to_string(i);
      const LinearSpec fc1{name + ".fc1", {4 * kHidden, kHidden}, true, DType::kF32, kInit};
      const LinearSpec fc2{name + ".fc2", {kHidden, 4 * kHidden}, true, DType::kF32, kInit};
      layers_.push_back({name,
                         std::make_unique<ColumnParallelLinear>(registry_, parallel.tensor(), fc1),
                         std::make_unique<RowParallelLinear>(registry_, parallel.tensor(), fc2),
                         &Declare(name + ".mix", {kHidden, kHidden}, Init::Normal(0.2)), nullptr});
    }
    for (Layer& layer : layers_)
      layer.norm = &Declare(layer.name + ".norm", {kHidden}, Init::Ones());
    if (parallel.last_stage()) output_ = &Declare("output", {kVocab, kHidden}, kInit);
  }

  const ParameterRegistry& registry() const override { return registry_; }
  bool first() const override { return table_ != nullptr; }
  bool last() const override { return output_ != nullptr; }
  Shape ActivationShape(int64_t s, int64_t b) const override { return {s, b, kHidden}; }
  DType activation_dtype() const override { return DType::kF32; }

  Value Forward(const ForwardContext& context, const Value& input,
                const Microbatch& batch) const override {
    if (!last()) return Hidden(context, input, batch.tokens);
    const Value logits = Logits(context, input, batch.tokens);
    const Value loss = VocabParallelCrossEntropy(context, logits, batch.targets, kVocab, self_);
    return ScaledMean(context, loss, 1.0f);
  }
  Value Logits(const ForwardContext& context, const Value& input,
               const Tensor& tokens) const override {
    return Linear(context, Hidden(context, input, tokens), *output_, nullptr, "output");
  }

 private:
  struct Layer {
    std::string name;
    std::unique_ptr<ColumnParallelLinear> fc1;
    std::unique_ptr<RowParallelLinear> fc2;
    const Parameter *mix, *norm;
  };
  static constexpr Init kInit = {Init::Kind::kNormal, 0.1};

  const Parameter& Declare(const std::string& name, const Shape& shape, Init init) {
    // Every tensor-parallel rank holds all of it.
    return registry_.Declare({.name = name, .global_shape = shape, .box = Box::Whole(shape)}, init);
  }

  Value Hidden(const ForwardContext& context, const Value& input, const Tensor& tokens) const {
    Value x = first() ? Embedding(context, tokens, *table_, 0, "embedding") : input;
    for (size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      const Parameter& borrowed = *layers_[(i + 1) % layers_.size()].mix;
      Value y = Linear(context, x, borrowed, nullptr, layer.name + ", borrowing");
      y = RmsNorm(context, y, *layer.norm, 1e-5f, layer.name);
      y = layer.fc2->Forward(context, layer.fc1->ForwardGelu(context, y, GeluKind::kTanh));
      x = Add(context, x, y);
    }
    return x;
  }

  comm::ProcessGroup& self_;  // the output table is whole on every rank
  ParameterRegistry registry_;
  std::vector<Layer> layers_;
  const Parameter *table_ = nullptr, *output_ = nullptr;  // of the first stage, of the last
};

}  // namespace mixer
