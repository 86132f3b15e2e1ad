// SPDX-License-Identifier: Apache-2.0
#include "models/registration_order.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace forerun {
namespace {

ParameterRegistry Declared() {
  ParameterRegistry registry;
  for (const char* name :
       {"embedding", "layers.0.norm", "layers.0.attention.w", "layers.0.mlp.a", "layers.0.mlp.b",
        "layers.0.post_norm", "layers.1.attention.w", "layers.1.mlp.a", "final.mlp.w"}) {
    registry.Declare({.name = name, .global_shape = {2}, .box = Box::Whole({2})}, Init::Zeros());
  }
  return registry;
}

std::vector<std::string> NamesAfter(const char* order) {
  ParameterRegistry registry = Declared();
  RegistrationOrder::Parse(order).value().ApplyTo(registry);
  std::vector<std::string> names;
  for (const Parameter* parameter : registry.parameters()) {
    EXPECT_EQ(parameter->id(), static_cast<int>(names.size()));
    names.push_back(parameter->name());
  }
  return names;
}

TEST(RegistrationOrder, ReversedTurnsForwardRound) {
  std::vector<std::string> names = NamesAfter("reversed");
  std::reverse(names.begin(), names.end());
  EXPECT_EQ(names, NamesAfter("forward"));
}

TEST(RegistrationOrder, MlpFirstActsWithinEachLayer) {
  const std::vector<std::string> expected = {
      "embedding",      "layers.0.mlp.a",       "layers.0.mlp.b",
      "layers.0.norm",  "layers.0.attention.w", "layers.0.post_norm",
      "layers.1.mlp.a", "layers.1.attention.w", "final.mlp.w"};
  EXPECT_EQ(NamesAfter("mlp-first"), expected);
}

TEST(RegistrationOrder, ShuffledIsAPermutationThatTheSeedChooses) {
  std::vector<std::string> names = NamesAfter("shuffled:7");
  EXPECT_EQ(names, NamesAfter("shuffled:7"));
  EXPECT_NE(names, NamesAfter("shuffled:8"));
  std::vector<std::string> declared = NamesAfter("forward");
  std::sort(declared.begin(), declared.end());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, declared);
}

TEST(RegistrationOrder, ParseSaysWhatThereIs) {
  for (const char* text : {"", "backward", "shuffled", "shuffled:", "shuffled:x", "Forward"}) {
    const absl::Status status = RegistrationOrder::Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(
        std::string(status.message()).find("it is forward, reversed, mlp-first or shuffled:SEED"),
        std::string::npos);
  }
}

}  // namespace
}  // namespace forerun
