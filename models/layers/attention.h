// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "core/autograd/context.h"
#include "core/autograd/tape.h"
#include "core/nn/registry.h"
#include "models/config.h"
#include "parallel/comm/process_group.h"
#include "parallel/tensor_parallel/column_parallel_linear.h"
#include "parallel/tensor_parallel/row_parallel_linear.h"

namespace forerun {

// Causal self-attention. Each tensor-parallel rank holds an equal share of the key and value
// groups with their query heads: one fused projection of its columns, attention among its own
// heads, and a projection of its rows that sums over ranks.
class Attention {
 public:
  // Parameters are <name>.qkv.{weight,bias} and <name>.proj.{weight,bias}.
  Attention(ParameterRegistry& registry, const GptConfig& config, comm::ProcessGroup& group,
            absl::string_view name);

  // x [s, b, hidden] -> [s, b, hidden].
  Value Forward(const ForwardContext& context, const Value& x) const;

 private:
  const std::string name_;
  const GptConfig config_;
  const int64_t groups_;       // of key and value heads, here
  const int64_t first_group_;  // of the whole model
  const ColumnParallelLinear qkv_;
  const RowParallelLinear proj_;
};

}  // namespace forerun
