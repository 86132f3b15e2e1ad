// SPDX-License-Identifier: Apache-2.0
#include "core/autograd/functions.h"

#include <cmath>
#include <vector>

#include "core/autograd/testing/function_check.h"
#include "core/autograd/testing/test_device.h"
#include "core/base/check.h"
#include "core/ops/attention.h"
#include "core/ops/copy.h"
#include "core/ops/rope.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

// These functions have no weights to read.
class NoParameters final : public ParamReader {
 public:
  ParamLease Read(const Parameter& parameter, Stream&, absl::string_view) override {
    FR_CHECK(false) << "read of " << parameter.name();
    return ParamLease(Tensor());
  }
};

class FunctionsTest : public testing::Test {
 protected:
  // Samples 2 and 3 of a global batch of 5.
  ForwardContext ContextOn(const TestDevice& device) {
    return {.op = device.op(),
            .reader = reader_,
            .random = RandomKey::Root(3),
            .first_sample = 2,
            .global_batch = 5,
            .training = true};
  }
  ForwardContext Context() { return ContextOn(cpu_); }

  // Gradients on cpu, shapes on meta.
  void Check(const std::vector<Shape>& inputs, const TestFunction& function) {
    std::vector<Tensor> values, shapes;
    for (size_t i = 0; i < inputs.size(); ++i) {
      values.push_back(cpu_.Normal(i == 0 ? "first" : "second", inputs[i]));
      shapes.push_back(meta_.op().Empty(inputs[i], DType::kBF16));
    }
    const ForwardContext context = Context();
    ExpectGradients(context, function, values);
    std::vector<Value> constants;
    for (const Tensor& value : values) constants.push_back(Value{value});
    EXPECT_EQ(ExpectGradientShapes(ContextOn(meta_), function, shapes),
              function(context, constants).tensor.shape());
  }

  Tensor Copied(const Tensor& x) {
    Tensor copy = cpu_.op().Empty(x.shape(), x.dtype());
    CopyInto(cpu_.op(), x, copy);
    return copy;
  }

  NoParameters reader_;
  TestDevice cpu_{DeviceKind::kCpu};
  TestDevice meta_{DeviceKind::kMeta};
};

TEST_F(FunctionsTest, AddHasTheGradientOfDifferences) {
  Check({{2, 3}, {2, 3}}, [](const ForwardContext& context, absl::Span<const Value> x) {
    return Add(context, x[0], x[1]);
  });
}

TEST_F(FunctionsTest, ActivationsHaveTheGradientOfDifferences) {
  for (GeluKind kind : {GeluKind::kTanh, GeluKind::kExact}) {
    Check({{2, 3, 4}}, [kind](const ForwardContext& context, absl::Span<const Value> x) {
      return Gelu(context, x[0], kind);
    });
  }
  Check({{2, 3, 4}}, [](const ForwardContext& context, absl::Span<const Value> x) {
    return Swiglu(context, x[0]);
  });
}

TEST_F(FunctionsTest, DropoutHasTheGradientOfDifferences) {
  Check({{3, 2, 4}}, [](const ForwardContext& context, absl::Span<const Value> x) {
    return Dropout(context, x[0], {.site = "layers.0.mlp", .p = 0.4f});
  });
}

TEST_F(FunctionsTest, DropoutOfAPartIsThePartOfDropout) {
  constexpr int64_t kRows = 4, kBatch = 5, kWidth = 6;
  const Tensor x = cpu_.Normal("x", {kRows, kBatch, kWidth});
  ForwardContext context = Context();
  context.first_sample = 0;
  const DropoutSite whole{.site = "embedding", .p = 0.5f};
  const Tensor expected = Dropout(context, Value{x}, whole).tensor;

  context.first_sample = 2;
  DropoutSite part = whole;
  part.first_column = 3;
  part.total_width = kWidth;
  part.first_row = 1;
  part.total_rows = kRows;
  const auto cut = [&](const Tensor& t) {
    return Copied(t.Slice(0, 1, 4).Slice(1, 2, 4).Slice(2, 3, 6));
  };
  EXPECT_EQ(ValuesOf(Dropout(context, Value{cut(x)}, part).tensor), ValuesOf(cut(expected)));

  part.site = "another";
  EXPECT_NE(ValuesOf(Dropout(context, Value{cut(x)}, part).tensor), ValuesOf(cut(expected)));
}

TEST_F(FunctionsTest, DropoutIsTheIdentityInEvaluationAndAtZero) {
  const Value x{cpu_.Normal("x", {2, 2, 2})};
  ForwardContext context = Context();
  EXPECT_EQ(Dropout(context, x, {.site = "a"}).tensor.raw_data(), x.tensor.raw_data());
  context.training = false;
  EXPECT_EQ(Dropout(context, x, {.site = "a", .p = 0.5f}).tensor.raw_data(), x.tensor.raw_data());
}

FusedAttentionSpec Spec(int64_t groups, int64_t queries, int64_t head_dim, bool rope) {
  return {.groups = groups,
          .queries = queries,
          .head_dim = head_dim,
          .rope = rope,
          .dropout = 0.25f,
          .site = "layers.0.attention"};
}

Shape FusedShape(int64_t s, int64_t b, const FusedAttentionSpec& spec) {
  return {s, b, spec.groups * (spec.queries + 2) * spec.head_dim};
}

TEST_F(FunctionsTest, FusedAttentionHasTheGradientOfDifferences) {
  for (bool rope : {false, true}) {
    for (const auto& [groups, queries] : {std::pair{2, 1}, {1, 2}, {2, 2}}) {
      const FusedAttentionSpec spec = Spec(groups, queries, 2, rope);
      Check({FusedShape(3, 2, spec)},
            [spec](const ForwardContext& context, absl::Span<const Value> x) {
              return FusedCausalAttention(context, x[0], spec);
            });
    }
  }
}

// The oracle puts queries, keys and values into tensors of their own, head by head.
TEST_F(FunctionsTest, FusedAttentionIsAttentionOfItsParts) {
  constexpr int64_t kS = 4, kB = 2, kGroups = 3, kQueries = 2, kDim = 4;
  for (bool rope : {false, true}) {
    const FusedAttentionSpec spec = Spec(kGroups, kQueries, kDim, rope);
    const Tensor qkv = cpu_.Normal("qkv", FusedShape(kS, kB, spec));
    const Tensor heads = qkv.View({kS, kB, kGroups * (kQueries + 2), kDim});
    Tensor q = cpu_.op().Empty({kS, kB, kGroups * kQueries, kDim}, qkv.dtype());
    Tensor k = cpu_.op().Empty({kS, kB, kGroups, kDim}, qkv.dtype());
    Tensor v = cpu_.op().Empty({kS, kB, kGroups, kDim}, qkv.dtype());
    for (int64_t g = 0; g < kGroups; ++g) {
      const int64_t first = g * (kQueries + 2);
      const auto move = [&](int64_t head, const Tensor& to, int64_t place) {
        CopyInto(cpu_.op(), heads.Slice(2, head, head + 1), to.Slice(2, place, place + 1));
      };
      for (int64_t i = 0; i < kQueries; ++i) move(first + i, q, g * kQueries + i);
      move(first + kQueries, k, g);
      move(first + kQueries + 1, v, g);
    }
    if (rope) {
      q = Rope(cpu_.op(), q, {});
      k = Rope(cpu_.op(), k, {});
    }
    const ForwardContext context = Context();
    AttentionOptions options;
    options.scale = 1.0f / std::sqrt(static_cast<float>(kDim));
    options.dropout = spec.dropout;
    options.key = context.random.Fold(spec.site);
    options.first_sample = context.first_sample;
    options.total_heads = kGroups * kQueries;
    const Tensor expected = CausalAttention(cpu_.op(), q, k, v, options).out;
    EXPECT_EQ(ValuesOf(FusedCausalAttention(context, Value{qkv}, spec).tensor), ValuesOf(expected));
  }
}

TEST_F(FunctionsTest, FusedAttentionOfSomeGroupsIsThoseGroupsOfTheWhole) {
  constexpr int64_t kS = 4, kB = 2, kDim = 2;
  const FusedAttentionSpec whole = Spec(4, 2, kDim, /*rope=*/true);
  const Tensor qkv = cpu_.Normal("qkv", FusedShape(kS, kB, whole));
  const Tensor expected = FusedCausalAttention(Context(), Value{qkv}, whole).tensor;
  for (int64_t groups : {1, 2}) {
    for (int64_t first = 0; first < 4; first += groups) {
      FusedAttentionSpec part = whole;
      part.groups = groups;
      part.first_group = first;
      part.total_groups = 4;
      const int64_t in = (2 + 2) * kDim, out = 2 * kDim;  // columns of a group
      const Tensor mine = Copied(qkv.Slice(2, first * in, (first + groups) * in));
      EXPECT_EQ(ValuesOf(FusedCausalAttention(Context(), Value{mine}, part).tensor),
                ValuesOf(Copied(expected.Slice(2, first * out, (first + groups) * out))));
    }
  }
}

// Beside its output and one statistic a row, the tape holds as much as one qkv: the qkv itself, or
// copies in its place.
TEST_F(FunctionsTest, FusedAttentionKeepsNoSecondQkv) {
  for (bool rope : {false, true}) {
    for (const auto& [groups, queries] : {std::pair{4, 1}, {1, 4}, {2, 2}}) {
      const FusedAttentionSpec spec = Spec(groups, queries, 8, rope);
      Tape tape;
      ForwardContext context = ContextOn(meta_);
      context.tape = &tape;
      Value qkv = tape.Leaf(meta_.op().Empty(FusedShape(16, 2, spec), DType::kF32));
      const int64_t bytes = qkv.tensor.bytes();
      const Value out = FusedCausalAttention(context, qkv, spec);
      qkv.tensor = Tensor();
      const int64_t statistics = 2 * groups * queries * 16 * SizeOf(DType::kF32);
      EXPECT_EQ(meta_.allocator().bytes_in_use(), bytes + out.tensor.bytes() + statistics);
    }
  }
}

TEST_F(FunctionsTest, ScaledMeanSpreadsItsGradient) {
  Tape tape;
  ForwardContext context = Context();
  context.tape = &tape;
  const Value x = tape.Leaf(cpu_.Normal("x", {2, 4}, DType::kF32));
  const Value mean = ScaledMean(context, x, 0.5f);
  ASSERT_EQ(mean.tensor.numel(), 1);
  double sum = 0.0;
  for (double value : ValuesOf(x.tensor)) sum += value;
  EXPECT_NEAR(ValuesOf(mean.tensor)[0], sum / 8 * 0.5, 1e-7);
  Tensor dy = cpu_.op().Empty({1}, DType::kF32);
  Fill(cpu_.op(), 16.0f, dy);
  tape.BackwardInput(cpu_.op(), mean, dy);
  EXPECT_EQ(tape.LeafGradient(x).shape(), x.tensor.shape());
  EXPECT_EQ(ValuesOf(tape.LeafGradient(x)), std::vector<double>(8, 1.0));

  const Tensor shape = meta_.op().Empty({2, 4}, DType::kF32);
  EXPECT_EQ(ExpectGradientShapes(ContextOn(meta_),
                                 [](const ForwardContext& on_meta, absl::Span<const Value> values) {
                                   return ScaledMean(on_meta, values[0], 2.0f);
                                 },
                                 {shape}),
            Shape{1});
}

}  // namespace
}  // namespace forerun
