// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/autograd/context.h"
#include "core/autograd/parameter.h"
#include "core/autograd/tape.h"
#include "core/nn/registry.h"
#include "core/ops/activation.h"
#include "parallel/comm/process_group.h"
#include "parallel/tensor_parallel/linear_spec.h"

namespace forerun {

// A linear layer whose output features are split over the ranks of a group. Its input enters the
// region here (its gradient is summed over ranks); its output stays inside: this rank's features.
// The registry and the group outlive it. That the features can be split is checked.
class ColumnParallelLinear {
 public:
  ColumnParallelLinear(ParameterRegistry& registry, comm::ProcessGroup& group,
                       const LinearSpec& spec);

  // x [..., in], the same on every rank -> [..., parts * out / ranks].
  Value Forward(const ForwardContext& context, const Value& x) const;
  // The activation of it, applied while the product is written.
  Value ForwardGelu(const ForwardContext& context, const Value& x, GeluKind gelu) const;

 private:
  const std::string name_;
  comm::ProcessGroup* const group_;
  const Parameter* const weight_;
  const Parameter* const bias_;  // null: none
};

}  // namespace forerun
