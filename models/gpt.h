// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "models/chunk.h"
#include "models/config.h"
#include "models/layers/embedding.h"
#include "models/layers/head.h"
#include "models/layers/transformer_layer.h"
#include "models/recompute_plan.h"
#include "models/registration_order.h"
#include "parallel/comm/process_group.h"

namespace forerun {

// The part of a GPT that one pipeline stage of one tensor-parallel rank runs:
//
//   tokens -> embedding -> layer 0 -> layer 1 -> ... -> final norm, output projection -> loss
//             ^ first stage only                        ^ last stage only
//
// Which family it belongs to is the config's matter: see gpt2.h and llama.h. A table that is tied
// to the output projection and does not live on one stage with it is declared on both, under one
// name: the first stage holds the primary copy.
class GptChunk final : public ModelChunk {
 public:
  // Where a chunk stands: chunk `stage` of `stages` in forward order.
  struct Stage {
    int stage = 0;
    int stages = 1;
  };

  // Fails in one sentence where the config is wrong or cannot be split so. `group` holds the
  // tensor-parallel ranks, and outlives the chunk.
  static absl::StatusOr<std::unique_ptr<GptChunk>> Create(const GptConfig& config, Stage stage,
                                                          comm::ProcessGroup& group,
                                                          const RegistrationOrder& order = {},
                                                          const RecomputePlan& recompute = {});

  const ParameterRegistry& registry() const override { return registry_; }
  bool first() const override { return embedding_.has_value(); }
  bool last() const override { return head_.has_value(); }
  Value Forward(const ForwardContext& context, const Value& input,
                const Microbatch& microbatch) const override;
  Value Logits(const ForwardContext& context, const Value& input,
               const Tensor& tokens) const override;
  Shape ActivationShape(int64_t s, int64_t b) const override;
  DType activation_dtype() const override { return config_.dtype; }

 private:
  GptChunk(const GptConfig& config, Stage stage, LayerRange layers, comm::ProcessGroup& group,
           const RecomputePlan& recompute);
  Value RunSegment(const ForwardContext& context, const LayerSegment& segment,
                   const Value& x) const;
  Value Hidden(const ForwardContext& context, const Value& input, const Tensor& tokens) const;

  const GptConfig config_;
  ParameterRegistry registry_;  // before the layers, which refer to its parameters
  absl::optional<EmbeddingLayer> embedding_;
  std::vector<std::unique_ptr<TransformerLayer>> layers_;
  const std::vector<LayerSegment> segments_;
  absl::optional<OutputHead> head_;
};

}  // namespace forerun
