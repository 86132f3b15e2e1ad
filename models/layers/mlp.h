// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"
#include "core/autograd/context.h"
#include "core/autograd/tape.h"
#include "core/nn/registry.h"
#include "core/ops/activation.h"
#include "models/config.h"
#include "parallel/comm/process_group.h"
#include "parallel/tensor_parallel/column_parallel_linear.h"
#include "parallel/tensor_parallel/row_parallel_linear.h"

namespace forerun {

// fc2(gelu(fc1(x))), or fc2(silu(gate) * up) with [gate, up] = fc1(x) (Shazeer 2020). The inner
// features are split over tensor-parallel ranks. A gated fc1's weight is [2, ffn, hidden], gate
// first, so that every rank holds the same features of both.
class Mlp {
 public:
  // Parameters are <name>.fc1.{weight,bias} and <name>.fc2.{weight,bias}.
  Mlp(ParameterRegistry& registry, const GptConfig& config, comm::ProcessGroup& group,
      absl::string_view name);

  // x [s, b, hidden] -> [s, b, hidden].
  Value Forward(const ForwardContext& context, const Value& x) const;

 private:
  const bool swiglu_;
  const GeluKind gelu_;
  const ColumnParallelLinear fc1_;
  const RowParallelLinear fc2_;
};

}  // namespace forerun
