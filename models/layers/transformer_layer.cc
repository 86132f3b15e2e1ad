// SPDX-License-Identifier: Apache-2.0
#include "models/layers/transformer_layer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/autograd/functions.h"

namespace forerun {

TransformerLayer::TransformerLayer(ParameterRegistry& registry, const GptConfig& config,
                                   comm::ProcessGroup& group, int number)
    : name_(absl::StrCat("layers.", number)),
      attention_site_(absl::StrCat(name_, ".attention.output")),
      mlp_site_(absl::StrCat(name_, ".mlp.output")),
      dropout_(config.hidden_dropout),
      hidden_size_(config.hidden_size),
      input_norm_(registry, config, config.norm, absl::StrCat(name_, ".input_norm")),
      attention_(registry, config, group, absl::StrCat(name_, ".attention")),
      pre_mlp_norm_(registry, config, config.norm, absl::StrCat(name_, ".pre_mlp_norm")),
      mlp_(registry, config, group, absl::StrCat(name_, ".mlp")) {
  if (!config.post_sublayer_norms) return;
  post_attention_norm_.emplace(registry, config, NormKind::kRmsNorm,
                               absl::StrCat(name_, ".post_attention_norm"));
  post_mlp_norm_.emplace(registry, config, NormKind::kRmsNorm,
                         absl::StrCat(name_, ".post_mlp_norm"));
}

Value TransformerLayer::Forward(const ForwardContext& context, const Value& x) const {
  const Value attended = attention_.Forward(context, input_norm_.Forward(context, x));
  const Value y = AddResidual(context, x, attended, post_attention_norm_, attention_site_);
  const Value transformed = mlp_.Forward(context, pre_mlp_norm_.Forward(context, y));
  return AddResidual(context, y, transformed, post_mlp_norm_, mlp_site_);
}

Value TransformerLayer::AddResidual(const ForwardContext& context, const Value& x, Value sublayer,
                                    const absl::optional<Norm>& post_norm,
                                    const std::string& site) const {
  if (post_norm.has_value()) sublayer = post_norm->Forward(context, sublayer);
  sublayer = Dropout(context, sublayer, {.site = site, .p = dropout_, .total_width = hidden_size_});
  return Add(context, x, sublayer);
}

}  // namespace forerun
