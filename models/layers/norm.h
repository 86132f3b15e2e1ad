// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "core/autograd/context.h"
#include "core/autograd/parameter.h"
#include "core/autograd/tape.h"
#include "core/nn/registry.h"
#include "models/config.h"

namespace forerun {

// LayerNorm (weight and bias) or RMSNorm (weight) over the hidden dim; every tensor-parallel rank
// has all of it. The registry outlives it.
class Norm {
 public:
  // Parameters are <name>.weight and, for a LayerNorm, <name>.bias.
  Norm(ParameterRegistry& registry, const GptConfig& config, NormKind kind, absl::string_view name);

  Value Forward(const ForwardContext& context, const Value& x) const;

 private:
  const std::string name_;
  const float epsilon_;
  const Parameter* const weight_;
  const Parameter* const bias_;  // null for an RMSNorm
};

}  // namespace forerun
