// SPDX-License-Identifier: Apache-2.0
#include "core/autograd/testing/function_check.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/autograd/testing/map_sink.h"
#include "core/autograd/testing/test_device.h"
#include "core/random/random.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

constexpr double kStep = 1e-4;
constexpr double kTolerance = 1e-6;

// One function with its arguments, run in several ways.
class FunctionRun {
 public:
  FunctionRun(const ForwardContext& context, const TestFunction& function,
              absl::Span<const Tensor> inputs)
      : context_(context), function_(function), inputs_(inputs) {}

  Value Forward(Tape* tape, absl::Span<const Value> values) const {
    ForwardContext context = context_;
    context.tape = tape;
    return function_(context, values);
  }

  std::vector<Value> Constants() const {
    std::vector<Value> values;
    for (const Tensor& input : inputs_) values.push_back(Value{input});
    return values;
  }

  std::vector<Value> Leaves(Tape& tape) const {
    std::vector<Value> values;
    for (const Tensor& input : inputs_) values.push_back(tape.Leaf(input));
    return values;
  }

  // The objective: the output weighed with the gradient that the backward pass starts from.
  double Objective() const {
    const Tensor output = Forward(nullptr, Constants()).tensor;
    const std::vector<double> values = ValuesOf(output);
    const std::vector<double> r = ValuesOf(OutputGradient(output));
    double sum = 0.0;
    for (size_t i = 0; i < values.size(); ++i) sum += values[i] * r[i];
    return sum;
  }

  // Drawn by index, so the same for every run.
  Tensor OutputGradient(const Tensor& output) const {
    Tensor gradient = context_.op.Empty(output.shape(), output.dtype());
    if (output.is_meta()) return gradient;
    std::vector<float> values(output.numel());
    FillNormal(RandomKey::Root(11), 0, 1.0, absl::MakeSpan(values));
    VisitFloating(output.dtype(), [&](auto element) {
      using T = decltype(element);
      std::transform(values.begin(), values.end(), gradient.mutable_data<T>(),
                     [](float value) { return T(value); });
    });
    return gradient;
  }

  // Gradients of the inputs; those of the weights go to `sink`.
  std::vector<Tensor> Backward(MapSink& sink, bool apart) const {
    Tape tape;
    const std::vector<Value> leaves = Leaves(tape);
    const Value output = Forward(&tape, leaves);
    const Tensor gradient = OutputGradient(output.tensor);
    if (apart) {
      tape.BackwardInput(context_.op, output, gradient);
      tape.BackwardWeight(context_.op, sink);
    } else {
      tape.Backward(context_.op, output, gradient, sink);
    }
    std::vector<Tensor> gradients;
    for (const Value& leaf : leaves) gradients.push_back(tape.LeafGradient(leaf));
    return gradients;
  }

  // Gradients of the weights alone.
  void BackwardOfConstants(MapSink& sink) const {
    Tape tape;
    const Value output = Forward(&tape, Constants());
    tape.Backward(context_.op, output, OutputGradient(output.tensor), sink);
  }

  // Central differences over every element of `variable`, an input or a weight.
  std::vector<double> Differences(const Tensor& variable) const {
    double* elements = variable.mutable_data<double>();
    std::vector<double> gradient(variable.numel());
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double value = elements[i];
      elements[i] = value + kStep;
      const double above = Objective();
      elements[i] = value - kStep;
      const double below = Objective();
      elements[i] = value;
      gradient[i] = (above - below) / (2 * kStep);
    }
    return gradient;
  }

 private:
  const ForwardContext& context_;
  const TestFunction& function_;
  const absl::Span<const Tensor> inputs_;
};

void ExpectClose(const std::vector<double>& gradient, const std::vector<double>& expected,
                 double factor, const std::string& what) {
  ASSERT_EQ(gradient.size(), expected.size()) << what;
  double largest = 1e-3;  // below it, an absolute bound
  for (double value : expected) largest = std::max(largest, std::abs(value * factor));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(gradient[i], factor * expected[i], kTolerance * largest)
        << what << ", element " << i;
  }
}

}  // namespace

void ExpectGradients(const ForwardContext& context, const TestFunction& function,
                     absl::Span<const Tensor> inputs, absl::Span<const TestWeight> weights) {
  const FunctionRun run(context, function, inputs);
  MapSink sink(context.op), apart(context.op), alone(context.op);
  const std::vector<Tensor> gradients = run.Backward(sink, /*apart=*/false);
  const std::vector<Tensor> gradients_apart = run.Backward(apart, /*apart=*/true);
  run.BackwardOfConstants(alone);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string what = "input " + std::to_string(i);
    ASSERT_TRUE(gradients[i].defined()) << what;
    ExpectClose(ValuesOf(gradients[i]), run.Differences(inputs[i]), 1.0, what);
    EXPECT_EQ(ValuesOf(gradients[i]), ValuesOf(gradients_apart[i])) << what;
  }
  MapSink twice(context.op);
  for (int pass = 0; pass < 2; ++pass) run.Backward(twice, /*apart=*/false);
  for (const TestWeight& weight : weights) {
    const Parameter& parameter = *weight.parameter;
    EXPECT_EQ(sink.contributions(parameter), parameter.trainable() ? weight.contributions : 0)
        << parameter.name();
    if (!parameter.trainable()) continue;
    const std::vector<double> expected = run.Differences(weight.value);
    ExpectClose(ValuesOf(sink.gradient(parameter)), expected, 1.0, parameter.name());
    ExpectClose(ValuesOf(twice.gradient(parameter)), expected, 2.0, parameter.name());
    EXPECT_EQ(sink.Values(parameter), apart.Values(parameter)) << parameter.name();
    EXPECT_EQ(sink.Values(parameter), alone.Values(parameter)) << parameter.name();
  }
  Tape tape;
  EXPECT_EQ(ValuesOf(run.Forward(&tape, run.Leaves(tape)).tensor),
            ValuesOf(run.Forward(nullptr, run.Constants()).tensor));
}

Shape ExpectGradientShapes(const ForwardContext& context, const TestFunction& function,
                           absl::Span<const Tensor> inputs, absl::Span<const TestWeight> weights) {
  const FunctionRun run(context, function, inputs);
  MapSink sink(context.op);
  const std::vector<Tensor> gradients = run.Backward(sink, /*apart=*/false);
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(gradients[i].shape(), inputs[i].shape()) << "input " << i;
    EXPECT_EQ(gradients[i].dtype(), inputs[i].dtype()) << "input " << i;
    EXPECT_TRUE(gradients[i].is_meta()) << "input " << i;
  }
  for (const TestWeight& weight : weights) {
    EXPECT_EQ(sink.contributions(*weight.parameter), weight.parameter->trainable() ? 1 : 0)
        << weight.parameter->name();
  }
  return run.Forward(nullptr, run.Constants()).tensor.shape();
}

}  // namespace forerun
