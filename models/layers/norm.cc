// SPDX-License-Identifier: Apache-2.0
#include "models/layers/norm.h"

#include "absl/strings/str_cat.h"
#include "core/nn/functions.h"

namespace forerun {
namespace {

const Parameter* DeclareVector(ParameterRegistry& registry, const GptConfig& config,
                               absl::string_view name, absl::string_view part, Init init) {
  const Shape shape = {config.hidden_size};
  return &registry.Declare({.name = absl::StrCat(name, ".", part),
                            .global_shape = shape,
                            .box = Box::Whole(shape),
                            .dtype = config.dtype,
                            .weight_decay = false},
                           init);
}

}  // namespace

Norm::Norm(ParameterRegistry& registry, const GptConfig& config, NormKind kind,
           absl::string_view name)
    : name_(name),
      epsilon_(config.norm_epsilon),
      weight_(DeclareVector(registry, config, name, "weight", Init::Ones())),
      bias_(kind == NormKind::kRmsNorm
                ? nullptr
                : DeclareVector(registry, config, name, "bias", Init::Zeros())) {}

Value Norm::Forward(const ForwardContext& context, const Value& x) const {
  if (bias_ == nullptr) return RmsNorm(context, x, *weight_, epsilon_, name_);
  return LayerNorm(context, x, *weight_, *bias_, epsilon_, name_);
}

}  // namespace forerun
