// SPDX-License-Identifier: Apache-2.0
#include "models/gpt.h"

#include "core/autograd/recompute.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace forerun {

absl::StatusOr<std::unique_ptr<GptChunk>> GptChunk::Create(const GptConfig& config, Stage stage,
                                                           comm::ProcessGroup& group,
                                                           const RegistrationOrder& order,
                                                           const RecomputePlan& recompute) {
  FR_RETURN_IF_ERROR(config.Validate());
  FR_RETURN_IF_ERROR(config.ValidateSplit(group.size(), stage.stages));
  FR_ASSIGN_OR_RETURN(const LayerRange layers, LayersOfStage(config.num_layers, stage.stages,
                                                             stage.stage, config.end_stages));
  std::unique_ptr<GptChunk> chunk(new GptChunk(config, stage, layers, group, recompute));
  order.ApplyTo(chunk->registry_);
  return chunk;
}

GptChunk::GptChunk(const GptConfig& config, Stage stage, LayerRange layers,
                   comm::ProcessGroup& group, const RecomputePlan& recompute)
    : config_(config), segments_(SegmentsOf(layers.size(), recompute)) {
  const bool first = stage.stage == 0;
  const bool last = stage.stage == stage.stages - 1;
  if (first) {
    const bool shared = config.tied_embeddings && !last;
    embedding_.emplace(registry_, config, group, shared ? Sharing::kPrimary : Sharing::kNone);
  }
  for (int layer = layers.begin; layer < layers.end; ++layer) {
    layers_.push_back(std::make_unique<TransformerLayer>(registry_, config, group, layer));
  }
  if (last) head_.emplace(registry_, config, group, first ? &embedding_->word_table() : nullptr);
}

Value GptChunk::RunSegment(const ForwardContext& context, const LayerSegment& segment,
                           const Value& x) const {
  const auto run = [this, &segment](const ForwardContext& inner, const Value& input) {
    Value y = input;
    for (int layer = segment.layers.begin; layer < segment.layers.end; ++layer) {
      y = layers_[layer]->Forward(inner, y);
    }
    return y;
  };
  return segment.recompute ? Recompute(context, x, run) : run(context, x);
}

Value GptChunk::Hidden(const ForwardContext& context, const Value& input,
                       const Tensor& tokens) const {
  Value x = embedding_.has_value() ? embedding_->Forward(context, tokens) : input;
  for (const LayerSegment& segment : segments_) x = RunSegment(context, segment, x);
  return x;
}

Value GptChunk::Forward(const ForwardContext& context, const Value& input,
                        const Microbatch& microbatch) const {
  const Value x = Hidden(context, input, microbatch.tokens);
  return head_.has_value() ? head_->Loss(context, x, microbatch.targets) : x;
}

Value GptChunk::Logits(const ForwardContext& context, const Value& input,
                       const Tensor& tokens) const {
  FR_CHECK(last()) << "only the last chunk has logits";
  return head_->Logits(context, Hidden(context, input, tokens));
}

Shape GptChunk::ActivationShape(int64_t s, int64_t b) const { return {s, b, config_.hidden_size}; }

}  // namespace forerun
