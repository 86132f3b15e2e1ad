// SPDX-License-Identifier: Apache-2.0
#include "core/autograd/recompute.h"

#include <memory>
#include <vector>

#include "core/autograd/contribute.h"
#include "core/autograd/functions.h"
#include "core/autograd/testing/map_sink.h"
#include "core/autograd/testing/test_device.h"
#include "core/ops/copy.h"
#include "core/ops/elementwise.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

const Shape kShape{2, 2, 4};

// The gate to one weight, which counts its reads.
class OneWeight final : public ParamReader {
 public:
  explicit OneWeight(Tensor value) : value_(std::move(value)) {}
  ParamLease Read(const Parameter&, Stream&, absl::string_view) override {
    ++reads_;
    return ParamLease(value_.AsReadOnly());
  }
  int reads() const { return reads_; }

 private:
  const Tensor value_;
  int reads_ = 0;
};

// y = x + w.
class AddWeightNode final : public Node {
 public:
  explicit AddWeightNode(const Parameter& weight) : weight_(weight) {}
  absl::string_view name() const override { return "add_weight"; }
  void BackwardInput(const OpContext&, absl::Span<const Tensor> grad_outputs,
                     absl::Span<const bool> wanted, absl::Span<Tensor> grad_inputs) override {
    if (wanted[0]) grad_inputs[0] = grad_outputs[0];
  }
  void BackwardWeight(const OpContext& context, absl::Span<const Tensor> grad_outputs,
                      GradSink& sink) override {
    Contribute(context, sink, weight_, [&](const GradSlot& slot) {
      if (!slot.accumulate) Fill(context, 0.0f, slot.grad);
      AddInto(context, grad_outputs[0], slot.grad);
    });
  }

 private:
  const Parameter& weight_;
};

class RecomputeTest : public testing::Test {
 protected:
  ForwardContext ContextOn(const TestDevice& device, ParamReader& reader, Tape* tape) {
    return {.op = device.op(),
            .reader = reader,
            .tape = tape,
            .random = RandomKey::Root(3),
            .global_batch = 2,
            .training = true};
  }

  // gelu(dropout(x) + w) + w, which uses the weight twice.
  Segment MakeSegment() {
    return [this](const ForwardContext& context, const Value& x) {
      Value y = Dropout(context, x, {.site = "segment", .p = 0.5f});
      y = AddWeight(context, y);
      return AddWeight(context, Gelu(context, y, GeluKind::kTanh));
    };
  }

  Value AddWeight(const ForwardContext& context, const Value& x) {
    const ParamLease lease = context.reader.Read(weight_, *context.op.stream, "test");
    Tensor y = Add(context.op, x.tensor, lease.tensor());
    return context.Record(std::make_unique<AddWeightNode>(weight_), {x}, std::move(y), {&weight_});
  }

  Tensor Normal(const char* name) { return cpu_.Normal(name, kShape, DType::kF32); }

  struct Result {
    std::vector<double> output, input_gradient;
    std::vector<float> weight_gradient;
    int reads;
    bool operator==(const Result&) const = default;
  };
  // Two such segments in a row.
  Result Run(bool recompute, bool apart, bool constant_input = false) {
    Tape tape;
    OneWeight reader(Normal("w"));
    const ForwardContext context = ContextOn(cpu_, reader, &tape);
    const Value x = constant_input ? Value{Normal("x")} : tape.Leaf(Normal("x"));
    Value y = x;
    for (int i = 0; i < 2; ++i) {
      y = recompute ? Recompute(context, y, MakeSegment()) : MakeSegment()(context, y);
    }
    EXPECT_EQ(tape.contributions().size(), 4u);
    MapSink sink(cpu_.op());
    if (apart) {
      tape.BackwardInput(cpu_.op(), y, Normal("dy"));
      tape.BackwardWeight(cpu_.op(), sink);
    } else {
      tape.Backward(cpu_.op(), y, Normal("dy"), sink);
    }
    EXPECT_EQ(sink.contributions(weight_), 4);
    std::vector<double> input_gradient;
    if (!constant_input) input_gradient = ValuesOf(tape.LeafGradient(x));
    return {ValuesOf(y.tensor), input_gradient, sink.Values(weight_), reader.reads()};
  }

  const Parameter weight_{0, {.name = "w", .global_shape = kShape, .box = Box::Whole(kShape)}};
  TestDevice cpu_{DeviceKind::kCpu};
};

TEST_F(RecomputeTest, HasTheBitsOfTheSegmentItself) {
  for (bool constant_input : {false, true}) {
    Result expected = Run(/*recompute=*/false, /*apart=*/false, constant_input);
    EXPECT_EQ(expected.reads, 4);
    expected.reads = 8;  // once more in the backward pass
    EXPECT_EQ(Run(/*recompute=*/true, /*apart=*/false, constant_input), expected);
    EXPECT_EQ(Run(/*recompute=*/true, /*apart=*/true, constant_input), expected);
  }
}

TEST_F(RecomputeTest, KeepsOnlyTheInputOfEachSegment) {
  TestDevice meta(DeviceKind::kMeta);
  OneWeight reader(meta.op().Empty(kShape, DType::kF32));
  const int64_t bytes = kShape.numel() * SizeOf(DType::kF32);
  Tape tape;
  const ForwardContext context = ContextOn(meta, reader, &tape);
  Value x = tape.Leaf(meta.op().Empty(kShape, DType::kF32));
  for (int i = 0; i < 3; ++i) x = Recompute(context, x, MakeSegment());
  // The weight, three inputs and the last output.
  EXPECT_EQ(meta.allocator().bytes_in_use(), 5 * bytes);
}

TEST_F(RecomputeTest, WithoutATapeItIsTheSegment) {
  OneWeight reader(Normal("w"));
  const ForwardContext context = ContextOn(cpu_, reader, nullptr);
  const Value x{Normal("x")};
  EXPECT_EQ(ValuesOf(Recompute(context, x, MakeSegment()).tensor),
            ValuesOf(MakeSegment()(context, x).tensor));
  EXPECT_EQ(reader.reads(), 4);
}

using RecomputeDeathTest = RecomputeTest;

TEST_F(RecomputeDeathTest, RefusesASegmentThatChanges) {
  OneWeight reader(Normal("w"));
  Tape tape;
  const ForwardContext context = ContextOn(cpu_, reader, &tape);
  int calls = 0;
  const Value y =
      Recompute(context, tape.Leaf(Normal("x")), [&](const ForwardContext& inner, const Value& x) {
        Value sum = AddWeight(inner, x);
        return ++calls == 1 ? sum : AddWeight(inner, sum);
      });
  EXPECT_DEATH(tape.BackwardInput(cpu_.op(), y, Normal("dy")), "used other weights than before");
}

}  // namespace
}  // namespace forerun
