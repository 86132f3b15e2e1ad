// SPDX-License-Identifier: Apache-2.0
#include "models/layers/attention.h"

#include "absl/strings/str_cat.h"
#include "core/autograd/functions.h"

namespace forerun {

Attention::Attention(ParameterRegistry& registry, const GptConfig& config,
                     comm::ProcessGroup& group, absl::string_view name)
    : name_(name),
      config_(config),
      groups_(config.num_query_groups / group.size()),
      first_group_(group.rank() * groups_),
      qkv_(registry, group,
           {.name = absl::StrCat(name, ".qkv"),
            .weight = {config.num_query_groups * (config.queries_per_group() + 2) *
                           config.head_dim(),
                       config.hidden_size},
            .bias = config.add_bias_linear,
            .dtype = config.dtype,
            .init = Init::Normal(config.init_method_std)}),
      proj_(registry, group,
            {.name = absl::StrCat(name, ".proj"),
             .weight = {config.hidden_size, config.hidden_size},
             .bias = config.add_bias_linear,
             .dtype = config.dtype,
             .init = Init::Normal(config.output_init_std())}) {}

Value Attention::Forward(const ForwardContext& context, const Value& x) const {
  const Value qkv = qkv_.Forward(context, x);
  const Value heads =
      FusedCausalAttention(context, qkv,
                           {.groups = groups_,
                            .queries = config_.queries_per_group(),
                            .head_dim = config_.head_dim(),
                            .rope = config_.position_embedding == PositionEmbedding::kRope,
                            .rope_base = config_.rotary_base,
                            .dropout = config_.attention_dropout,
                            .site = name_,
                            .first_group = first_group_,
                            .total_groups = config_.num_query_groups});
  return proj_.Forward(context, heads);
}

}  // namespace forerun
