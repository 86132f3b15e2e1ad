// SPDX-License-Identifier: Apache-2.0
#include "models/registration_order.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/random/random.h"

namespace forerun {
namespace {

using Kind = RegistrationOrder::Kind;

// "layers.7" of "layers.7.mlp.fc1.weight"; empty outside layers.
absl::string_view LayerOf(absl::string_view name) {
  constexpr absl::string_view kLayers = "layers.";
  if (!absl::StartsWith(name, kLayers)) return {};
  return name.substr(0, name.find('.', kLayers.size()));
}

// Within each run of one layer's parameters, those of its MLP move to the front.
void PutMlpFirst(absl::Span<const Parameter* const> declared, std::vector<int>& order) {
  for (auto begin = order.begin(); begin != order.end();) {
    const absl::string_view layer = LayerOf(declared[*begin]->name());
    const auto end = std::find_if(begin, order.end(),
                                  [&](int i) { return LayerOf(declared[i]->name()) != layer; });
    std::stable_partition(begin, end, [&](int i) {
      return !layer.empty() && absl::StartsWith(declared[i]->name(), absl::StrCat(layer, ".mlp."));
    });
    begin = end;
  }
}

}  // namespace

absl::StatusOr<RegistrationOrder> RegistrationOrder::Parse(absl::string_view text) {
  if (text == "forward") return RegistrationOrder(Kind::kForward);
  if (text == "reversed") return RegistrationOrder(Kind::kReversed);
  if (text == "mlp-first") return RegistrationOrder(Kind::kMlpFirst);
  absl::string_view rest = text;
  uint64_t seed = 0;
  if (absl::ConsumePrefix(&rest, "shuffled:") && absl::SimpleAtoi(rest, &seed)) {
    return RegistrationOrder(Kind::kShuffled, seed);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown registration order '", text,
                   "': it is forward, reversed, mlp-first or shuffled:SEED"));
}

std::vector<int> RegistrationOrder::Permutation(absl::Span<const Parameter* const> declared) const {
  std::vector<int> order(declared.size());
  std::iota(order.begin(), order.end(), 0);
  if (kind_ == Kind::kReversed) std::reverse(order.begin(), order.end());
  if (kind_ == Kind::kMlpFirst) PutMlpFirst(declared, order);
  if (kind_ == Kind::kShuffled) {
    const RandomKey key = RandomKey::Root(seed_).Fold("registration order");
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = static_cast<int>(PermutationAt(key, order.size(), i));
    }
  }
  return order;
}

void RegistrationOrder::ApplyTo(ParameterRegistry& registry) const {
  registry.Permute(Permutation(registry.parameters()));
}

}  // namespace forerun
