// SPDX-License-Identifier: Apache-2.0
#include "models/layers/mlp.h"

#include "absl/strings/str_cat.h"
#include "core/autograd/functions.h"

namespace forerun {
namespace {

Shape Fc1Shape(const GptConfig& config) {
  if (config.swiglu) return {2, config.ffn_hidden_size, config.hidden_size};
  return {config.ffn_hidden_size, config.hidden_size};
}

}  // namespace

Mlp::Mlp(ParameterRegistry& registry, const GptConfig& config, comm::ProcessGroup& group,
         absl::string_view name)
    : swiglu_(config.swiglu),
      gelu_(config.gelu),
      fc1_(registry, group,
           {.name = absl::StrCat(name, ".fc1"),
            .weight = Fc1Shape(config),
            .bias = config.add_bias_linear,
            .dtype = config.dtype,
            .init = Init::Normal(config.init_method_std)}),
      fc2_(registry, group,
           {.name = absl::StrCat(name, ".fc2"),
            .weight = {config.hidden_size, config.ffn_hidden_size},
            .bias = config.add_bias_linear,
            .dtype = config.dtype,
            .init = Init::Normal(config.output_init_std())}) {}

Value Mlp::Forward(const ForwardContext& context, const Value& x) const {
  if (swiglu_) return fc2_.Forward(context, Swiglu(context, fc1_.Forward(context, x)));
  return fc2_.Forward(context, fc1_.ForwardGelu(context, x, gelu_));
}

}  // namespace forerun
