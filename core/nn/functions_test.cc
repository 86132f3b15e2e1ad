// SPDX-License-Identifier: Apache-2.0
#include "core/nn/functions.h"

#include <memory>
#include <string>
#include <vector>

#include "core/autograd/testing/function_check.h"
#include "core/autograd/testing/map_sink.h"
#include "core/autograd/testing/test_device.h"
#include "core/nn/registry.h"
#include "core/nn/testing/plain_reader.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using Strings = std::vector<std::string>;

// Weights on one device.
struct Weights {
  Weights(DeviceKind kind, const ParameterRegistry& registry)
      : device(kind), reader(device.op(), registry, 1) {}
  ForwardContext Context(Tape* tape = nullptr) {
    return {.op = device.op(), .reader = reader, .tape = tape};
  }
  TestDevice device;
  PlainReader reader;
};

class FunctionsTest : public testing::Test {
 protected:
  const Parameter& Declare(const char* name, const Shape& shape,
                           ParameterKind kind = ParameterKind::kTrainable) {
    return registry_.Declare({.name = name,
                              .global_shape = shape,
                              .box = Box::Whole(shape),
                              .dtype = DType::kF64,
                              .kind = kind},
                             Init::Normal(0.7));
  }

  // Gradients on cpu, shapes on meta, of an input of this shape and all declared weights.
  void Check(const Shape& input, const TestFunction& function) {
    Weights cpu(DeviceKind::kCpu, registry_), meta(DeviceKind::kMeta, registry_);
    const Tensor x = cpu.device.Normal("x", input);
    ExpectGradients(cpu.Context(), function, {x}, WeightsOf(cpu.reader));
    EXPECT_EQ(cpu.reader.live_leases(), 0);
    EXPECT_EQ(ExpectGradientShapes(meta.Context(), function, {meta.device.Normal("x", input)},
                                   WeightsOf(meta.reader)),
              function(cpu.Context(), {Value{x}}).tensor.shape());
  }

  std::vector<TestWeight> WeightsOf(const PlainReader& reader) const {
    std::vector<TestWeight> weights;
    for (const Parameter* parameter : registry_.parameters()) {
      weights.push_back({parameter, reader.value(*parameter)});
    }
    return weights;
  }

  // What a context on cpu reads and keeps.
  Weights& cpu() {
    if (cpu_ == nullptr) cpu_ = std::make_unique<Weights>(DeviceKind::kCpu, registry_);
    return *cpu_;
  }

  ParameterRegistry registry_;
  std::unique_ptr<Weights> cpu_;
};

TEST_F(FunctionsTest, LinearHasTheGradientOfDifferences) {
  const Parameter& weight = Declare("weight", {4, 3});
  const Parameter& bias = Declare("bias", {4});
  Check({2, 2, 3}, [&](const ForwardContext& context, absl::Span<const Value> x) {
    return Linear(context, x[0], weight, &bias, "fc");
  });
}

TEST_F(FunctionsTest, LinearTakesAWeightOfThreeDimsAsRows) {
  const Parameter& weight = Declare("weight", {2, 3, 4});
  const Parameter& bias = Declare("bias", {2, 3});
  Check({2, 2, 4}, [&](const ForwardContext& context, absl::Span<const Value> x) {
    return Linear(context, x[0], weight, &bias, "fc1");
  });
}

TEST_F(FunctionsTest, LinearIsTheSumOfProducts) {
  const Parameter& weight = Declare("weight", {4, 3});
  const Parameter& bias = Declare("bias", {4});
  const Tensor x = cpu().device.Normal("x", {5, 3});
  const Tensor y = Linear(cpu().Context(), Value{x}, weight, &bias, "fc").tensor;
  const double* w = cpu().reader.value(weight).data<double>();
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      double expected = cpu().reader.value(bias).data<double>()[j];
      for (int64_t k = 0; k < 3; ++k) expected += x.data<double>()[i * 3 + k] * w[j * 3 + k];
      EXPECT_NEAR(y.data<double>()[i * 4 + j], expected, 1e-12);
    }
  }
}

TEST_F(FunctionsTest, FrozenWeightsContributeNothingAndTheOthersDo) {
  const Parameter& weight = Declare("weight", {4, 3}, ParameterKind::kFrozen);
  const Parameter& bias = Declare("bias", {4});
  const Parameter& gamma = Declare("gamma", {4});
  const Parameter& beta = Declare("beta", {4}, ParameterKind::kFrozen);
  Check({3, 3}, [&](const ForwardContext& context, absl::Span<const Value> x) {
    const Value y = Linear(context, x[0], weight, &bias, "fc");
    return LayerNorm(context, y, gamma, beta, 1e-3f, "norm");
  });
}

TEST_F(FunctionsTest, OnlyFrozenWeightsAndConstantsGiveAConstant) {
  const Parameter& weight = Declare("weight", {4, 3}, ParameterKind::kFrozen);
  Tape tape;
  const Value x{cpu().device.Normal("x", {2, 3})};
  EXPECT_TRUE(Linear(cpu().Context(&tape), x, weight, nullptr, "fc").constant());
  EXPECT_TRUE(tape.Operators().empty());
  EXPECT_EQ(cpu().reader.live_leases(), 0);
}

TEST_F(FunctionsTest, LinearGeluHasTheGradientOfDifferences) {
  const Parameter& weight = Declare("weight", {4, 3});
  const Parameter& bias = Declare("bias", {4});
  for (GeluKind kind : {GeluKind::kNone, GeluKind::kTanh, GeluKind::kExact}) {
    Check({2, 2, 3}, [&](const ForwardContext& context, absl::Span<const Value> x) {
      return LinearGelu(context, x[0], weight, &bias, kind, "fc1");
    });
  }
}

TEST_F(FunctionsTest, AddBiasHasTheGradientOfDifferences) {
  const Parameter& bias = Declare("bias", {3});
  Check({2, 2, 3}, [&](const ForwardContext& context, absl::Span<const Value> x) {
    return AddBias(context, x[0], bias, "proj");
  });
}

TEST_F(FunctionsTest, NormsHaveTheGradientOfDifferences) {
  const Parameter& gamma = Declare("gamma", {5});
  const Parameter& beta = Declare("beta", {5});
  const Parameter& scale = Declare("scale", {5});
  Check({2, 2, 5}, [&](const ForwardContext& context, absl::Span<const Value> x) {
    const Value y = LayerNorm(context, x[0], gamma, beta, 1e-3f, "norm");
    return RmsNorm(context, y, scale, 1e-3f, "rms");
  });
}

TEST_F(FunctionsTest, EmbeddingHasTheGradientOfDifferences) {
  const Parameter& table = Declare("table", {4, 3});
  for (DeviceKind kind : {DeviceKind::kCpu, DeviceKind::kMeta}) {
    Weights weights(kind, registry_);
    // Row 2 is held elsewhere (below), row 7 too (above); row 4 is used twice, row 6 never.
    const Tensor tokens = weights.device.Tokens({3, 2}, {4, 2, 3, 4, 7, 5});
    const auto function = [&](const ForwardContext& context, absl::Span<const Value>) {
      return Embedding(context, tokens, table, /*first_row=*/3, "embedding");
    };
    if (kind == DeviceKind::kMeta) {
      EXPECT_EQ(ExpectGradientShapes(weights.Context(), function, {}, WeightsOf(weights.reader)),
                (Shape{3, 2, 3}));
      continue;
    }
    ExpectGradients(weights.Context(), function, {}, WeightsOf(weights.reader));
    EXPECT_EQ(weights.reader.live_leases(), 0);
  }
}

TEST_F(FunctionsTest, AddPositionsHasTheGradientOfDifferencesAndZeroInRowsNotUsed) {
  const Parameter& table = Declare("positions", {4, 3});
  Check({3, 2, 3}, [&](const ForwardContext& context, absl::Span<const Value> x) {
    return AddPositions(context, x[0], table, "positions");
  });
  Check({4, 1, 3}, [&](const ForwardContext& context, absl::Span<const Value> x) {
    return AddPositions(context, x[0], table, "positions");
  });
}

TEST_F(FunctionsTest, AddPositionsAddsTheRowOfThePlaceInTheSequence) {
  const Parameter& table = Declare("positions", {4, 3});
  const Tensor x = cpu().device.Normal("x", {2, 3, 3});
  const Tensor y = AddPositions(cpu().Context(), Value{x}, table, "positions").tensor;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t row = i / 9, column = i % 3;
    EXPECT_EQ(y.data<double>()[i],
              x.data<double>()[i] + cpu().reader.value(table).data<double>()[row * 3 + column]);
  }
}

TEST_F(FunctionsTest, ReadsWeightsInTheOrderOfTheArgumentsUnderTheReadersName) {
  const Parameter& bias = Declare("bias", {3});
  const Parameter& weight = Declare("weight", {3, 3});
  const Value x{cpu().device.Normal("x", {2, 3})};
  const ForwardContext context = cpu().Context();
  Linear(context, x, weight, &bias, "fc1");
  LinearGelu(context, x, weight, &bias, GeluKind::kTanh, "fc2");
  LayerNorm(context, x, bias, bias, 1e-5f, "norm");
  EXPECT_EQ(cpu().reader.reads(), (Strings{"fc1 weight", "fc1 bias", "fc2 weight", "fc2 bias",
                                           "norm bias", "norm bias"}));
}

TEST_F(FunctionsTest, LeasesEndWhereBackwardNeedsThemNoMore) {
  const Parameter& weight = Declare("weight", {3, 3});
  const Parameter& bias = Declare("bias", {3});
  const PlainReader& reader = cpu().reader;
  const Tensor x = cpu().device.Normal("x", {2, 3});
  {
    Tape tape;
    const ForwardContext context = cpu().Context(&tape);
    // Of a constant no gradient is wanted: no lease.
    Value y = LinearGelu(context, Value{x}, weight, &bias, GeluKind::kTanh, "fc1");
    EXPECT_EQ(reader.live_leases(), 0);
    y = LayerNorm(context, y, bias, bias, 1e-5f, "norm");  // gamma
    EXPECT_EQ(reader.live_leases(), 1);
    y = AddBias(context, y, bias, "bias");
    EXPECT_EQ(reader.live_leases(), 1);
    y = Linear(context, y, weight, &bias, "fc2");  // the weight
    EXPECT_EQ(reader.live_leases(), 2);
    tape.BackwardInput(cpu().device.op(), y, cpu().device.Normal("dy", {2, 3}));
    EXPECT_EQ(reader.live_leases(), 0);
  }
  Tape tape;
  const Value y = RmsNorm(cpu().Context(&tape), tape.Leaf(x), bias, 1e-5f, "rms");
  EXPECT_EQ(reader.live_leases(), 1);
  tape = Tape();  // a forward pass that is dropped gives its leases back
  EXPECT_EQ(reader.live_leases(), 0);
}

TEST_F(FunctionsTest, AWeightOfTwoLayersGetsTheSumOfTwoContributions) {
  const Parameter& weight = Declare("weight", {3, 3});
  const OpContext& op = cpu().device.op();
  Tape tape;
  const ForwardContext context = cpu().Context(&tape);
  const Value x = tape.Leaf(cpu().device.Normal("x", {2, 3}));
  const Value y = Linear(context, Linear(context, x, weight, nullptr, "a"), weight, nullptr, "b");
  EXPECT_EQ(tape.contributions().size(), 2u);
  MapSink sink(op);
  tape.Backward(op, y, cpu().device.Normal("dy", {2, 3}), sink);
  EXPECT_EQ(sink.contributions(weight), 2);
}

// 16-bit activations and weights, fp32 gradients of weights: as training runs.
TEST_F(FunctionsTest, WeightGradientsOfBFloat16AreFp32) {
  const Shape shape{4, 4};
  const Parameter& weight = registry_.Declare(
      {.name = "weight", .global_shape = shape, .box = Box::Whole(shape), .dtype = DType::kBF16},
      Init::Normal(1.0));
  const OpContext& op = cpu().device.op();
  Tape tape;
  const Value x = tape.Leaf(cpu().device.Normal("x", {2, 4}, DType::kBF16));
  const Value y = Linear(cpu().Context(&tape), x, weight, nullptr, "fc");
  const Tensor dy = cpu().device.Normal("dy", {2, 4}, DType::kBF16);
  MapSink sink(op);
  tape.Backward(op, y, dy, sink);
  EXPECT_EQ(tape.LeafGradient(x).dtype(), DType::kBF16);
  const std::vector<double> a = ValuesOf(dy), b = ValuesOf(x.tensor);
  for (int64_t i = 0; i < 16; ++i) {
    const double expected = a[i / 4] * b[i % 4] + a[4 + i / 4] * b[4 + i % 4];
    EXPECT_EQ(sink.Values(weight)[i], static_cast<float>(expected));
  }
}

}  // namespace
}  // namespace forerun
