// SPDX-License-Identifier: Apache-2.0
#include "core/autograd/tape.h"

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/contribute.h"
#include "core/autograd/testing/map_sink.h"
#include "core/autograd/testing/test_device.h"
#include "core/ops/copy.h"
#include "core/ops/elementwise.h"
#include "core/random/random.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

const Shape kShape{2, 3};

// y = sum of factor[i] * x[i], plus the weights; so every gradient is dy times a number. Keeps a
// tensor, as real nodes do, and writes down which halves ran.
class MixNode final : public Node {
 public:
  MixNode(std::vector<float> factors, std::vector<const Parameter*> weights, Tensor saved,
          std::vector<std::string>* log)
      : factors_(std::move(factors)),
        weights_(std::move(weights)),
        saved_(std::move(saved)),
        log_(log) {}
  ~MixNode() override { Log("destroyed"); }
  absl::string_view name() const override { return "mix"; }

  void BackwardInput(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) override {
    Log("input");
    for (size_t i = 0; i < factors_.size(); ++i) {
      if (wanted[i]) grad_inputs[i] = Scale(context, grad_outputs[0], factors_[i]);
    }
  }
  void BackwardWeight(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                      GradSink& sink) override {
    Log("weight");
    for (const Parameter* weight : weights_) {
      Contribute(context, sink, *weight, [&](const GradSlot& slot) {
        if (slot.accumulate) {
          AddInto(context, grad_outputs[0], slot.grad);
        } else {
          CopyInto(context, grad_outputs[0], slot.grad);
        }
      });
    }
  }

 private:
  void Log(const char* what) {
    if (log_ != nullptr) log_->push_back(what);
  }
  const std::vector<float> factors_;
  const std::vector<const Parameter*> weights_;
  const Tensor saved_;
  std::vector<std::string>* const log_;
};

class TapeTest : public testing::Test {
 protected:
  TapeTest() {
    for (int id = 0; id < 3; ++id) {
      parameters_.push_back(
          std::make_unique<Parameter>(id, ParameterSpec{.name = "w" + std::to_string(id),
                                                        .global_shape = kShape,
                                                        .box = Box::Whole(kShape)}));
    }
  }

  const OpContext& op() const { return device_.op(); }
  const Parameter* weight(int id) const { return parameters_[id].get(); }

  Tensor Filled(float value) const {
    Tensor tensor = op().Empty(kShape, DType::kF32);
    Fill(op(), value, tensor);
    return tensor;
  }

  Value Mix(Tape& tape, const std::vector<Value>& inputs, std::vector<float> factors,
            std::vector<const Parameter*> weights = {}, std::vector<std::string>* log = nullptr) {
    auto node = std::make_unique<MixNode>(std::move(factors), weights, Filled(0.0f), log);
    return tape.Record1(std::move(node), inputs, Filled(0.0f), weights);
  }

  static float First(const Tensor& tensor) { return tensor.data<float>()[0]; }

  TestDevice device_{DeviceKind::kCpu};
  std::vector<std::unique_ptr<Parameter>> parameters_;
};

TEST_F(TapeTest, ConstantsRecordNothing) {
  Tape tape;
  const Value y = Mix(tape, {Value{Filled(1.0f)}, Value{Filled(2.0f)}}, {1.0f, 1.0f});
  EXPECT_TRUE(y.constant());
  EXPECT_TRUE(tape.Operators().empty());
}

TEST_F(TapeTest, AWeightAloneGivesAGradient) {
  Tape tape;
  const Value y = Mix(tape, {Value{Filled(1.0f)}}, {1.0f}, {weight(0)});
  EXPECT_FALSE(y.constant());
  MapSink sink(op());
  tape.Backward(op(), y, Filled(3.0f), sink);
  EXPECT_EQ(First(sink.gradient(*weight(0))), 3.0f);
}

TEST_F(TapeTest, SeveralConsumersAddUp) {
  Tape tape;
  const Value x = tape.Leaf(Filled(1.0f));
  const Value a = Mix(tape, {x, x}, {2.0f, 3.0f});
  const Value y = Mix(tape, {a, x}, {1.0f, 7.0f});
  MapSink sink(op());
  tape.Backward(op(), y, Filled(1.0f), sink);
  EXPECT_EQ(First(tape.LeafGradient(x)), 12.0f);
}

TEST_F(TapeTest, AWeightUsedTwiceContributesTwice) {
  Tape tape;
  const Value x = tape.Leaf(Filled(1.0f));
  const Value a = Mix(tape, {x}, {2.0f}, {weight(0)});
  const Value y = Mix(tape, {a}, {5.0f}, {weight(1), weight(0)});
  const std::vector<const Parameter*> expected = {weight(0), weight(1), weight(0)};
  EXPECT_EQ(tape.contributions(), absl::MakeConstSpan(expected));
  MapSink sink(op());
  tape.Backward(op(), y, Filled(1.0f), sink);
  EXPECT_EQ(sink.contributions(*weight(0)), 2);
  EXPECT_EQ(First(sink.gradient(*weight(0))), 6.0f);
}

TEST_F(TapeTest, WhatTheOutputDoesNotDependOnContributesZeroAndIsNotCalled) {
  for (bool apart : {false, true}) {
    Tape tape;
    std::vector<std::string> log;
    const Value x = tape.Leaf(Filled(1.0f));
    const Value unused = tape.Leaf(Filled(1.0f));
    const Value y = Mix(tape, {x}, {2.0f}, {weight(0)});
    Mix(tape, {y, unused}, {1.0f, 1.0f}, {weight(1)}, &log);
    MapSink sink(op());
    if (apart) {
      tape.BackwardInput(op(), y, Filled(1.0f));
      tape.BackwardWeight(op(), sink);
    } else {
      tape.Backward(op(), y, Filled(1.0f), sink);
    }
    EXPECT_EQ(log, std::vector<std::string>{"destroyed"});
    EXPECT_EQ(sink.Values(*weight(1)), std::vector<float>(kShape.numel(), 0.0f));
    EXPECT_EQ(First(tape.LeafGradient(x)), 2.0f);
    EXPECT_FALSE(tape.LeafGradient(unused).defined());
  }
}

TEST_F(TapeTest, AConstantOutputStillKeepsEveryPromise) {
  Tape tape;
  Mix(tape, {tape.Leaf(Filled(1.0f))}, {2.0f}, {weight(0)});
  MapSink sink(op());
  tape.Backward(op(), Value{Filled(1.0f)}, Filled(1.0f), sink);
  EXPECT_EQ(sink.contributions(*weight(0)), 1);
  EXPECT_EQ(First(sink.gradient(*weight(0))), 0.0f);
}

TEST_F(TapeTest, AnOutputThatIsALeafHasTheGivenGradient) {
  Tape tape;
  const Value x = tape.Leaf(Filled(1.0f));
  tape.BackwardInput(op(), x, Filled(4.0f));
  EXPECT_EQ(First(tape.LeafGradient(x)), 4.0f);
}

TEST_F(TapeTest, HalvesRunInReverseAndANodeEndsAfterItsLast) {
  using Log = std::vector<std::string>;
  Log log;
  Tape joined;
  Value y = Mix(joined, {joined.Leaf(Filled(1.0f))}, {1.0f}, {weight(0)}, &log);
  y = Mix(joined, {y}, {1.0f}, {}, &log);
  MapSink sink(op());
  joined.Backward(op(), y, Filled(1.0f), sink);
  EXPECT_EQ(log, (Log{"input", "destroyed", "input", "weight", "destroyed"}));

  log.clear();
  Tape apart;
  y = Mix(apart, {apart.Leaf(Filled(1.0f))}, {1.0f}, {weight(0)}, &log);
  y = Mix(apart, {y}, {1.0f}, {}, &log);
  apart.BackwardInput(op(), y, Filled(1.0f));
  EXPECT_EQ(log, (Log{"input", "destroyed", "input"}));
  apart.BackwardWeight(op(), sink);
  EXPECT_EQ(log, (Log{"input", "destroyed", "input", "weight", "destroyed"}));
  apart.BackwardWeight(op(), sink);  // nothing is left to do
  EXPECT_EQ(log.size(), 5u);
}

// A chain of n nodes, each with one saved tensor: while it is replayed, at most a few gradients
// live beside what is still saved, and in the end only the leaf's gradient does.
TEST_F(TapeTest, MemoryIsFreedAsTheBackwardPassProceeds) {
  TestDevice meta(DeviceKind::kMeta);
  const int64_t bytes = kShape.numel() * SizeOf(DType::kF32);
  const auto tensor = [&] { return meta.op().Empty(kShape, DType::kF32); };
  Tape tape;
  Value y = tape.Leaf(tensor());
  for (int i = 0; i < 8; ++i) {
    auto node = std::make_unique<MixNode>(std::vector<float>{1.0f}, std::vector<const Parameter*>{},
                                          tensor(), nullptr);
    y = tape.Record1(std::move(node), {y}, tensor());
  }
  Tensor gradient = tensor();
  y.tensor = Tensor();
  EXPECT_EQ(meta.allocator().bytes_in_use(), 9 * bytes);
  tape.BackwardInput(meta.op(), y, std::move(gradient));
  EXPECT_EQ(meta.allocator().bytes_in_use(), bytes);
  EXPECT_EQ(meta.allocator().peak_bytes(), 10 * bytes);
}

TEST_F(TapeTest, OperatorsTellTheDataFlow) {
  Tape tape;
  const Value x = tape.Leaf(Filled(1.0f));
  const Value a = Mix(tape, {x}, {1.0f}, {weight(0)});
  const Value b = Mix(tape, {a, Value{Filled(1.0f)}}, {1.0f, 1.0f});
  Mix(tape, {b, a}, {1.0f, 1.0f}, {weight(2), weight(1)});
  const std::vector<Tape::Operator> operators = tape.Operators();
  ASSERT_EQ(operators.size(), 3u);
  EXPECT_EQ(operators[0].name, "mix");
  EXPECT_TRUE(operators[0].producers.empty());
  EXPECT_EQ(operators[1].producers, (absl::InlinedVector<int, 4>{0}));
  EXPECT_EQ(operators[2].producers, (absl::InlinedVector<int, 4>{1, 0}));
  EXPECT_EQ(operators[2].weights, (absl::InlinedVector<const Parameter*, 2>{weight(2), weight(1)}));
}

using TapeDeathTest = TapeTest;

TEST_F(TapeDeathTest, RefusesMisuse) {
  Tape tape, other;
  const Value x = tape.Leaf(Filled(1.0f));
  const Value y = Mix(tape, {x}, {1.0f}, {weight(0)});
  EXPECT_DEATH(Mix(other, {y}, {1.0f}), "value of another tape");
  EXPECT_DEATH(tape.LeafGradient(y), "not a leaf");
  MapSink sink(op());
  EXPECT_DEATH(tape.BackwardWeight(op(), sink), "come after input gradients");
  tape.BackwardInput(op(), y, Filled(1.0f));
  EXPECT_DEATH(tape.BackwardInput(op(), y, Filled(1.0f)), "replayed once");
}

// A random graph, and beside it the oracle: each value as a linear combination of leaves and
// weights, carried forward. Small whole numbers, so fp32 is exact.
class RandomGraph {
 public:
  static constexpr int kLeaves = 3, kWeights = 3, kOperators = 8;
  using Combination = std::vector<double>;  // by leaf, then by weight

  explicit RandomGraph(uint64_t seed) : key_(RandomKey::Root(seed)) {}

  int Draw(int count) { return static_cast<int>(UniformAt(key_, draws_++) * count); }

  struct Operator {
    std::vector<int> inputs;  // places among values; -1 is a constant
    std::vector<float> factors;
    std::vector<int> weights;
  };
  Operator DrawOperator() {
    Operator op;
    const int values = static_cast<int>(combinations_.size());
    for (int i = 1 + Draw(3); i > 0; --i) {
      op.inputs.push_back(Draw(values + 1) - 1);
      op.factors.push_back(std::vector<float>{-1.0f, 1.0f, 2.0f}[Draw(3)]);
    }
    for (int i = Draw(3); i > 0; --i) op.weights.push_back(Draw(kWeights));
    return op;
  }
  void AddLeaf() {
    Combination leaf(kLeaves + kWeights, 0.0);
    leaf[combinations_.size()] = 1.0;
    combinations_.push_back(leaf);
  }
  void Apply(const Operator& op) {
    Combination sum(kLeaves + kWeights, 0.0);
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i] < 0) continue;
      for (size_t j = 0; j < sum.size(); ++j) {
        sum[j] += op.factors[i] * combinations_[op.inputs[i]][j];
      }
    }
    for (int weight : op.weights) sum[kLeaves + weight] += 1.0;
    combinations_.push_back(sum);
  }
  const Combination& combination(int value) const { return combinations_[value]; }

 private:
  const RandomKey key_;
  uint64_t draws_ = 0;
  std::vector<Combination> combinations_;  // by value: leaves, then outputs of operators
};

TEST_F(TapeTest, RandomGraphsHaveTheGradientsOfTheirLinearCombinations) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomGraph graph(seed);
    Tape tape;
    std::vector<Value> values;
    for (int i = 0; i < RandomGraph::kLeaves; ++i) {
      values.push_back(tape.Leaf(Filled(0.0f)));
      graph.AddLeaf();
    }
    for (int i = 0; i < RandomGraph::kOperators; ++i) {
      const RandomGraph::Operator drawn = graph.DrawOperator();
      std::vector<Value> inputs;
      for (int input : drawn.inputs) {
        inputs.push_back(input < 0 ? Value{Filled(0.0f)} : values[input]);
      }
      std::vector<const Parameter*> weights;
      for (int id : drawn.weights) weights.push_back(weight(id));
      values.push_back(Mix(tape, inputs, drawn.factors, weights));
      graph.Apply(drawn);
    }
    const int output = graph.Draw(static_cast<int>(values.size()));
    MapSink sink(op());
    if (seed % 2 == 0) {
      tape.Backward(op(), values[output], Filled(1.0f), sink);
    } else {
      tape.BackwardInput(op(), values[output], Filled(1.0f));
      tape.BackwardWeight(op(), sink);
    }
    const RandomGraph::Combination& expected = graph.combination(output);
    for (int i = 0; i < RandomGraph::kLeaves; ++i) {
      const Tensor gradient = tape.LeafGradient(values[i]);
      EXPECT_EQ(gradient.defined() ? First(gradient) : 0.0f, expected[i]) << "seed " << seed;
    }
    for (int id = 0; id < RandomGraph::kWeights; ++id) {
      const Tensor gradient = sink.gradient(*weight(id));
      EXPECT_EQ(gradient.defined() ? First(gradient) : 0.0f, expected[RandomGraph::kLeaves + id])
          << "seed " << seed;
    }
    EXPECT_EQ(sink.log().size(), tape.contributions().size()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace forerun
