// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/proof/random_model.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/autograd/param_reader.h"
#include "core/autograd/tape.h"
#include "core/base/check.h"
#include "core/device/device.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace forerun::proof {
namespace {

// An operator that is recorded and never replayed.
class RecordedNode final : public Node {
 public:
  absl::string_view name() const override { return "random"; }
  void BackwardInput(const OpContext&, absl::Span<const Tensor>, absl::Span<const bool>,
                     absl::Span<Tensor>) override {}
};

ParameterSpec RandomParameter(std::string name, Dice& dice) {
  const Shape shape = {1 + dice.Below(dice.Chance(0.2f) ? 5000 : 600)};
  ParameterSpec spec;
  spec.name = std::move(name);
  spec.global_shape = shape;
  spec.box = Box::Whole(shape);
  spec.dtype = dice.Chance(0.3f) ? DType::kF32 : DType::kBF16;
  if (dice.Chance(0.2f)) spec.kind = ParameterKind::kOptional;
  if (dice.Chance(0.05f)) spec.kind = ParameterKind::kFrozen;
  if (dice.Chance(0.05f)) spec.sharing = Sharing::kPrimary;
  return spec;
}

}  // namespace

RandomModel::RandomModel(Dice& dice)
    : graph_((Declare(dice.Between(1, dice.Chance(0.3f) ? 40 : 12), dice), Record(dice))) {}

void RandomModel::Declare(int count, Dice& dice) {
  std::vector<int> names(count);
  for (int i = 0; i < count; ++i) names[i] = i;
  dice.Shuffle(names);
  // One at least has gradients, or there would be nothing to prove.
  ParameterSpec first = RandomParameter(absl::StrCat("p", names[0]), dice);
  first.kind = ParameterKind::kTrainable;
  registry_.Declare(std::move(first), Init::Zeros());
  for (int i = 1; i < count; ++i) {
    registry_.Declare(RandomParameter(absl::StrCat("p", names[i]), dice), Init::Zeros());
  }
}

ForwardOrderGraph RandomModel::Record(Dice& dice) const {
  std::vector<const Parameter*> uses;
  for (const Parameter* parameter : registry_.parameters()) {
    if (parameter->kind() == ParameterKind::kOptional && dice.Chance(0.3f)) continue;
    const int times = dice.Chance(0.2f) ? dice.Between(2, 3) : 1;
    uses.insert(uses.end(), times, parameter);
  }
  dice.Shuffle(uses);
  const Shape shape = {1};
  const Tensor output = Tensor::Wrap(nullptr, nullptr, shape, DType::kF32,
                                     Device{DeviceKind::kMeta}, Tensor::Access::kReadOnly);
  const auto forward = [&](ParamReader& reader, Tape& tape) {
    InlineStream stream(Device{DeviceKind::kMeta});
    Value value = tape.Leaf(output);
    for (const Parameter* parameter : uses) {
      const ParamLease lease = reader.Read(*parameter, stream, "layer");
      absl::Span<const Parameter* const> weights;
      if (parameter->trainable()) weights = absl::MakeConstSpan(&parameter, 1);
      value = tape.Record1(std::make_unique<RecordedNode>(), {value}, output, weights);
    }
  };
  absl::StatusOr<ForwardOrderGraph> graph = RecordForwardOrder(registry_.parameters(), forward);
  FR_CHECK(graph.ok()) << graph.status().ToString();
  return *std::move(graph);
}

}  // namespace forerun::proof
