// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/column_parallel_linear.h"

#include "absl/strings/str_cat.h"
#include "core/nn/functions.h"
#include "parallel/tensor_parallel/regions.h"
#include "parallel/tensor_parallel/split.h"

namespace forerun {
namespace {

const Parameter& DeclareWeight(ParameterRegistry& registry, comm::ProcessGroup& group,
                               const LinearSpec& spec) {
  return registry.Declare({.name = absl::StrCat(spec.name, ".weight"),
                           .global_shape = spec.weight,
                           .box = SplitBox(spec.weight, -2, group),
                           .dtype = spec.dtype},
                          spec.init);
}

const Parameter* DeclareBias(ParameterRegistry& registry, comm::ProcessGroup& group,
                             const LinearSpec& spec) {
  if (!spec.bias) return nullptr;
  const Shape features(spec.weight.dims().first(spec.weight.rank() - 1));
  return &registry.Declare({.name = absl::StrCat(spec.name, ".bias"),
                            .global_shape = features,
                            .box = SplitBox(features, -1, group),
                            .dtype = spec.dtype,
                            .weight_decay = false},
                           Init::Zeros());
}

}  // namespace

ColumnParallelLinear::ColumnParallelLinear(ParameterRegistry& registry, comm::ProcessGroup& group,
                                           const LinearSpec& spec)
    : name_(spec.name),
      group_(&group),
      weight_(&DeclareWeight(registry, group, spec)),
      bias_(DeclareBias(registry, group, spec)) {}

Value ColumnParallelLinear::Forward(const ForwardContext& context, const Value& x) const {
  return Linear(context, CopyToRegion(context, x, *group_), *weight_, bias_, name_);
}

Value ColumnParallelLinear::ForwardGelu(const ForwardContext& context, const Value& x,
                                        GeluKind gelu) const {
  return LinearGelu(context, CopyToRegion(context, x, *group_), *weight_, bias_, gelu, name_);
}

}  // namespace forerun
