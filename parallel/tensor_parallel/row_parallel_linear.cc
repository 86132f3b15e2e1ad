// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/row_parallel_linear.h"

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/nn/functions.h"
#include "parallel/tensor_parallel/regions.h"
#include "parallel/tensor_parallel/split.h"

namespace forerun {
namespace {

const Parameter& DeclareWeight(ParameterRegistry& registry, comm::ProcessGroup& group,
                               const LinearSpec& spec) {
  FR_CHECK_EQ(spec.weight.rank(), 2) << spec.name << " is row parallel: its weight is [out, in]";
  return registry.Declare({.name = absl::StrCat(spec.name, ".weight"),
                           .global_shape = spec.weight,
                           .box = SplitBox(spec.weight, -1, group),
                           .dtype = spec.dtype},
                          spec.init);
}

const Parameter* DeclareBias(ParameterRegistry& registry, const LinearSpec& spec) {
  if (!spec.bias) return nullptr;
  const Shape features = {spec.weight[0]};
  return &registry.Declare({.name = absl::StrCat(spec.name, ".bias"),
                            .global_shape = features,
                            .box = Box::Whole(features),
                            .dtype = spec.dtype,
                            .weight_decay = false},
                           Init::Zeros());
}

}  // namespace

RowParallelLinear::RowParallelLinear(ParameterRegistry& registry, comm::ProcessGroup& group,
                                     const LinearSpec& spec)
    : name_(spec.name),
      group_(&group),
      weight_(&DeclareWeight(registry, group, spec)),
      bias_(DeclareBias(registry, spec)) {}

Value RowParallelLinear::Forward(const ForwardContext& context, const Value& x) const {
  const Value part = Linear(context, x, *weight_, nullptr, name_);
  const Value sum = ReduceFromRegion(context, part, *group_);
  return bias_ == nullptr ? sum : AddBias(context, sum, *bias_, name_);
}

}  // namespace forerun
