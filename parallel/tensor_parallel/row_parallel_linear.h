// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/autograd/context.h"
#include "core/autograd/parameter.h"
#include "core/autograd/tape.h"
#include "core/nn/registry.h"
#include "parallel/comm/process_group.h"
#include "parallel/tensor_parallel/linear_spec.h"

namespace forerun {

// A linear layer whose input features are split over the ranks of a group: each rank multiplies
// its own, and the products are summed over ranks, which leaves the region. The bias is whole on
// every rank and added once, after the sum. The registry and the group outlive it. Weights are
// [out, in] here; that `in` can be split is checked.
class RowParallelLinear {
 public:
  RowParallelLinear(ParameterRegistry& registry, comm::ProcessGroup& group, const LinearSpec& spec);

  // x [..., in / ranks], this rank's features -> [..., out], the same on every rank.
  Value Forward(const ForwardContext& context, const Value& x) const;

 private:
  const std::string name_;
  comm::ProcessGroup* const group_;
  const Parameter* const weight_;
  const Parameter* const bias_;  // null: none
};

}  // namespace forerun
