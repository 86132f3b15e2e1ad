// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/testing/layer_case.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/autograd/testing/map_sink.h"
#include "core/autograd/testing/test_device.h"
#include "core/nn/testing/plain_reader.h"
#include "core/ops/copy.h"
#include "core/tensor/tensor.h"
#include "gtest/gtest.h"
#include "parallel/tensor_parallel/split.h"
#include "parallel/tensor_parallel/testing/box_indices.h"
#include "parallel/tensor_parallel/testing/rank_threads.h"

namespace forerun {
namespace {

constexpr uint64_t kSeed = 5;

// A tensor and where it lies in the one that a single rank has.
struct Part {
  std::string name;
  Box box;
  std::vector<double> values;
};

void ExpectNear(const Part& part, const Part& whole) {
  const std::vector<int64_t> indices = IndicesOf(part.box, whole.box.extent);
  ASSERT_EQ(part.values.size(), indices.size()) << part.name;
  double largest = 1e-3;
  for (double value : whole.values) largest = std::max(largest, std::fabs(value));
  for (size_t i = 0; i < indices.size(); ++i) {
    ASSERT_NEAR(part.values[i], whole.values[indices[i]], 1e-5 * largest)
        << part.name << " element " << i;
  }
}

void ExpectNear(const std::vector<Part>& parts, const std::vector<Part>& wholes) {
  ASSERT_EQ(parts.size(), wholes.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    ASSERT_EQ(parts[i].name, wholes[i].name);
    ExpectNear(parts[i], wholes[i]);
  }
}

// Not the initial values: biases must not be zero, nor norms one.
void FillWeights(const PlainReader& reader, const ParameterRegistry& registry) {
  for (const Parameter* parameter : registry.parameters()) {
    const Tensor& value = reader.value(*parameter);
    if (value.is_meta()) continue;
    InitialValue(*parameter, Init::Normal(0.5), kSeed,
                 absl::MakeSpan(value.mutable_data<float>(), value.numel()));
  }
}

// One rank's run of a layer. Parts are: output, gradient of the input if any, of each weight.
class LayerRun {
 public:
  LayerRun(const LayerCase& layer, comm::ProcessGroup& group, DeviceKind device)
      : layer_(layer), group_(group), device_(device) {}

  std::vector<Part> Run() {
    ParameterRegistry registry;
    const LayerCase::Forward forward = layer_.build(registry, group_);
    PlainReader reader(device_.op(), registry, kSeed);
    FillWeights(reader, registry);
    Tape tape;
    const ForwardContext context{.op = device_.op(), .reader = reader, .tape = &tape};

    const Box x_box = BoxOf(layer_.input, layer_.split_input);
    const Value x = tape.Leaf(Piece("x", layer_.input, x_box));
    const Value y = forward(context, x);
    const Box y_box = BoxOf(WholeOutput(y.tensor.shape()), layer_.split_output);
    MapSink sink(device_.op());
    tape.Backward(device_.op(), y, Piece("dy", WholeOutput(y.tensor.shape()), y_box), sink);

    Add("output", y_box, y.tensor);
    const Tensor dx = tape.LeafGradient(x);
    if (dx.defined()) Add("gradient of the input", x_box, dx);
    for (const Parameter* parameter : registry.parameters()) {
      EXPECT_EQ(sink.contributions(*parameter), 1) << parameter->name();
      Add("gradient of " + parameter->name(), parameter->box(), sink.gradient(*parameter));
    }
    return parts_;
  }

 private:
  Box BoxOf(const Shape& whole, bool split) const {
    return split ? SplitBox(whole, -1, group_) : Box::Whole(whole);
  }

  Shape WholeOutput(Shape shape) const {
    if (layer_.split_output) shape.set(-1, shape[-1] * group_.size());
    return shape;
  }

  Tensor Piece(const char* name, const Shape& whole, const Box& box) const {
    Tensor tensor = device_.Normal(name, whole, DType::kF32);
    const int64_t begin = box.offset.rank() == 0 ? 0 : box.offset[-1];
    if (box.Covers(whole)) return tensor;
    return Contiguous(device_.op(), tensor.Slice(-1, begin, begin + box.extent[-1]));
  }

  void Add(absl::string_view name, const Box& box, const Tensor& tensor) {
    EXPECT_EQ(tensor.shape(), box.extent) << std::string(name);
    std::vector<double> values;
    if (!tensor.is_meta()) values = ValuesOf(tensor);
    parts_.push_back({std::string(name), box, std::move(values)});
  }

  const LayerCase& layer_;
  comm::ProcessGroup& group_;
  const TestDevice device_;
  std::vector<Part> parts_;
};

std::vector<std::vector<Part>> RunOnRanks(const LayerCase& layer, int ranks) {
  std::vector<std::vector<Part>> parts(ranks);
  ForEachRank(ranks, [&](comm::ProcessGroup& group) {
    parts[group.rank()] = LayerRun(layer, group, DeviceKind::kCpu).Run();
  });
  return parts;
}

}  // namespace

void ExpectEqualsOneRank(const LayerCase& layer) {
  const std::vector<Part> whole = RunOnRanks(layer, 1)[0];
  for (int ranks : {2, 4}) {
    for (const std::vector<Part>& parts : RunOnRanks(layer, ranks)) {
      ASSERT_NO_FATAL_FAILURE(ExpectNear(parts, whole)) << ranks << " ranks";
    }
  }
}

void ExpectSameResults(const LayerCase& layer, const LayerCase& other) {
  for (int ranks : {1, 2, 4}) {
    const auto parts = RunOnRanks(layer, ranks), others = RunOnRanks(other, ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      // Both have the same boxes, so each part is a whole by itself.
      std::vector<Part> actual = parts[rank], expected = others[rank];
      for (std::vector<Part>* run : {&actual, &expected}) {
        for (Part& part : *run) part.box = Box::Whole(part.box.extent);
      }
      ASSERT_NO_FATAL_FAILURE(ExpectNear(actual, expected)) << "rank " << rank << " of " << ranks;
    }
  }
}

void ExpectRunsOnMeta(const LayerCase& layer) {
  const auto group = FakeGroup(/*rank=*/1, /*size=*/4);
  LayerRun(layer, *group, DeviceKind::kMeta).Run();
}

}  // namespace forerun
