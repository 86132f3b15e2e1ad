// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/types/optional.h"
#include "core/autograd/context.h"
#include "core/autograd/tape.h"
#include "core/nn/registry.h"
#include "models/config.h"
#include "models/layers/attention.h"
#include "models/layers/mlp.h"
#include "models/layers/norm.h"
#include "parallel/comm/process_group.h"

namespace forerun {

// One pre-norm residual layer:
//   x = x + dropout(attention(input_norm(x)))
//   x = x + dropout(mlp(pre_mlp_norm(x)))
// With post-sublayer norms, attention's and mlp's outputs are normed once more before dropout.
// Those norms are declared after all else, although they run in the middle.
class TransformerLayer {
 public:
  // Parameters start with "layers.<number>"; the number counts over the whole model.
  TransformerLayer(ParameterRegistry& registry, const GptConfig& config, comm::ProcessGroup& group,
                   int number);

  // x [s, b, hidden] -> [s, b, hidden].
  Value Forward(const ForwardContext& context, const Value& x) const;

 private:
  Value AddResidual(const ForwardContext& context, const Value& x, Value sublayer,
                    const absl::optional<Norm>& post_norm, const std::string& site) const;

  const std::string name_;
  const std::string attention_site_;  // of dropout
  const std::string mlp_site_;
  const float dropout_;
  const int64_t hidden_size_;
  // In the order in which they are declared.
  const Norm input_norm_;
  const Attention attention_;
  const Norm pre_mlp_norm_;
  const Mlp mlp_;
  absl::optional<Norm> post_attention_norm_;
  absl::optional<Norm> post_mlp_norm_;
};

}  // namespace forerun
