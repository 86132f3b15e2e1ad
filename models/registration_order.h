// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/autograd/parameter.h"
#include "core/nn/registry.h"

namespace forerun {

// In which order a chunk's parameters get their ids. It changes ids and nothing else; that no
// result depends on it is what Forerun is about, so every test may try them all.
class RegistrationOrder {
 public:
  enum class Kind : uint8_t {
    kForward,   // as the model declares them
    kReversed,  // the last declared first
    kMlpFirst,  // in each layer, its MLP's parameters before all others of the layer
    kShuffled,  // a permutation that a seed chooses
  };

  RegistrationOrder() = default;  // forward
  explicit RegistrationOrder(Kind kind, uint64_t seed = 0) : kind_(kind), seed_(seed) {}

  // "forward", "reversed", "mlp-first" or "shuffled:SEED".
  static absl::StatusOr<RegistrationOrder> Parse(absl::string_view text);

  // For ParameterRegistry::Permute: the declared parameters' indices in their new order.
  std::vector<int> Permutation(absl::Span<const Parameter* const> declared) const;

  void ApplyTo(ParameterRegistry& registry) const;

 private:
  Kind kind_ = Kind::kForward;
  uint64_t seed_ = 0;
};

}  // namespace forerun
