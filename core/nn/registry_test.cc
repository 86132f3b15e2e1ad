// SPDX-License-Identifier: Apache-2.0
#include "core/nn/registry.h"

#include <algorithm>
#include <vector>

#include "core/random/random.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

ParameterSpec Spec(const std::string& name, const Shape& shape) {
  return {.name = name, .global_shape = shape, .box = Box::Whole(shape)};
}

TEST(ParameterRegistry, IdsCountDeclarations) {
  ParameterRegistry registry;
  const Parameter& a = registry.Declare(Spec("a", {2}), Init::Zeros());
  const Parameter& b = registry.Declare(Spec("b", {3}), Init::Ones());
  EXPECT_EQ(a.id(), 0);
  EXPECT_EQ(b.id(), 1);
  EXPECT_EQ(registry.parameters()[1], &b);
  EXPECT_EQ(registry.init(b).kind, Init::Kind::kOnes);
}

TEST(ParameterRegistry, PermuteMovesIdsAndInitsAndKeepsAddresses) {
  ParameterRegistry registry;
  const Parameter& a = registry.Declare(Spec("a", {2}), Init::Normal(1.0));
  const Parameter& b = registry.Declare(Spec("b", {3}), Init::Normal(2.0));
  const Parameter& c = registry.Declare(Spec("c", {4}), Init::Normal(3.0));
  for (int round = 0; round < 2; ++round) {  // relative to declarations, however often
    registry.Permute({2, 0, 1});
    EXPECT_EQ(registry.parameters()[0], &c);
    EXPECT_EQ(registry.parameters()[1], &a);
    EXPECT_EQ(registry.parameters()[2], &b);
    for (int id = 0; id < 3; ++id) EXPECT_EQ(registry.parameters()[id]->id(), id);
    EXPECT_EQ(registry.init(a).stddev, 1.0);
    EXPECT_EQ(registry.init(b).stddev, 2.0);
    EXPECT_EQ(registry.init(c).stddev, 3.0);
  }
}

TEST(ParameterRegistry, SaysWhichDeclarationIsWrong) {
  ParameterRegistry twice;
  twice.Declare(Spec("a", {2}), Init::Zeros());
  EXPECT_TRUE(twice.status().ok());
  twice.Declare(Spec("a", {3}), Init::Zeros());
  EXPECT_EQ(twice.status().message(), "parameter a is declared twice");
  ParameterRegistry outside;
  ParameterSpec spec = Spec("b", {4, 4});
  spec.box = {{2, 0}, {3, 4}};
  outside.Declare(spec, Init::Zeros());
  outside.Declare(Spec("b", {4, 4}), Init::Zeros());  // the first counts
  EXPECT_EQ(outside.status().message(),
            "the box [2, 5) of dim 0 of parameter b leaves its global shape [4, 4]");
}

TEST(ParameterRegistryDeathTest, RefusesWhatIsWrongByName) {
  ParameterRegistry registry;
  registry.Declare(Spec("a", {2}), Init::Zeros());
  EXPECT_DEATH(registry.Permute({1}), "no permutation");
  ParameterRegistry other;
  const Parameter& stranger = other.Declare(Spec("c", {1}), Init::Zeros());
  EXPECT_DEATH(registry.init(stranger), "c belongs to another registry");
}

TEST(InitialValue, PaddingIsZeroAndChangesNothingElse) {
  for (const Init& init : {Init::Ones(), Init::Normal(1.0)}) {
    std::vector<std::vector<float>> values;
    for (const int64_t padding : {0, 3}) {
      ParameterRegistry registry;
      ParameterSpec spec = Spec("table", {8, 2});
      spec.box = {{2, 0}, {6, 2}};
      spec.padding_rows = padding;
      const Parameter& parameter = registry.Declare(spec, init);
      values.emplace_back(12);
      InitialValue(parameter, init, 5, absl::MakeSpan(values.back()));
    }
    std::fill(values[0].begin() + 6, values[0].end(), 0.0f);
    EXPECT_EQ(values[0], values[1]);
  }
}

// The oracle draws the whole parameter in one go and picks the box element by element.
std::vector<float> PickedFromWhole(const ParameterSpec& spec, uint64_t seed, double stddev) {
  std::vector<float> whole(spec.global_shape.numel());
  FillNormal(RandomKey::Root(seed).Fold("init").Fold(spec.name), 0, stddev, absl::MakeSpan(whole));
  std::vector<float> box;
  for (int64_t i = 0; i < spec.global_shape.numel(); ++i) {
    bool inside = true;
    int64_t rest = i;
    for (int dim = spec.global_shape.rank() - 1; dim >= 0; --dim) {
      const int64_t place = rest % spec.global_shape[dim] - spec.box.offset[dim];
      inside = inside && place >= 0 && place < spec.box.extent[dim];
      rest /= spec.global_shape[dim];
    }
    if (inside) box.push_back(whole[i]);
  }
  return box;
}

TEST(InitialValue, ABoxHoldsTheValuesOfTheWhole) {
  const Shape global{2, 6, 5};
  const std::vector<Box> boxes = {
      Box::Whole(global),     {{0, 2, 0}, {2, 2, 5}}, {{0, 0, 1}, {2, 6, 3}},
      {{1, 0, 0}, {1, 6, 5}}, {{1, 3, 4}, {1, 2, 1}}, {{0, 0, 0}, {2, 0, 5}},
  };
  for (const Box& box : boxes) {
    ParameterSpec spec = Spec("layers.0.mlp.fc1.weight", global);
    spec.box = box;
    ParameterRegistry registry;
    const Parameter& parameter = registry.Declare(spec, Init::Normal(0.02));
    std::vector<float> values(parameter.numel());
    InitialValue(parameter, Init::Normal(0.02), 7, absl::MakeSpan(values));
    EXPECT_EQ(values, PickedFromWhole(spec, 7, 0.02)) << box.offset << " " << box.extent;
  }
}

TEST(InitialValue, LargeParametersAreSplitOverThreadsWithTheSameBits) {
  ParameterSpec spec = Spec("embedding.weight", {301, 257});
  spec.box = {{0, 3}, {301, 250}};
  ParameterRegistry registry;
  const Parameter& parameter = registry.Declare(spec, Init::Normal(1.0));
  std::vector<float> values(parameter.numel());
  InitialValue(parameter, registry.init(parameter), 1, absl::MakeSpan(values));
  EXPECT_EQ(values, PickedFromWhole(spec, 1, 1.0));
}

TEST(InitialValue, DependsOnNameAndSeed) {
  ParameterRegistry registry;
  const Parameter& a = registry.Declare(Spec("a", {8}), Init::Normal(1.0));
  const Parameter& b = registry.Declare(Spec("b", {8}), Init::Normal(1.0));
  const auto values = [&](const Parameter& parameter, uint64_t seed) {
    std::vector<float> out(parameter.numel());
    InitialValue(parameter, registry.init(parameter), seed, absl::MakeSpan(out));
    return out;
  };
  EXPECT_NE(values(a, 1), values(b, 1));
  EXPECT_NE(values(a, 1), values(a, 2));
  EXPECT_EQ(values(a, 1), values(a, 1));
}

TEST(InitialValue, ZerosAndOnesFillEveryElement) {
  ParameterRegistry registry;
  const Parameter& a = registry.Declare(Spec("a", {3}), Init::Ones());
  std::vector<float> out(3, 5.0f);
  InitialValue(a, Init::Ones(), 1, absl::MakeSpan(out));
  EXPECT_EQ(out, std::vector<float>(3, 1.0f));
  InitialValue(a, Init::Zeros(), 1, absl::MakeSpan(out));
  EXPECT_EQ(out, std::vector<float>(3, 0.0f));
}

}  // namespace
}  // namespace forerun
