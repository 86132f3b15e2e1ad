// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attention.h"

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/parallel_for.h"
#include "core/ops/conformance/testing.h"
#include "core/ops/cpu/attention.h"
#include "core/ops/reference/attention.h"
#include "gtest/gtest.h"

// Bounds: one unit of the dtype for the rounding at the end; scores are sums of d products and go
// through an exponential, which makes their error (kScoreUnits of fp32) one of the probabilities.
// Backward takes the rounded `out` of the forward pass: kBackwardUnits of the dtype. Its gradients
// add up to s rows.
namespace forerun::conformance {
namespace {

constexpr double kUnits = 1, kScoreUnits = 64, kBackwardUnits = 3, kBackwardScoreUnits = 128;

const KernelTable& Reference() {
  static const KernelTable table{.attention = &reference::Attention()};
  return table;
}
const KernelTable& Cpu() {
  static const KernelTable table{.attention = &cpu::Attention()};
  return table;
}

struct Sizes {
  int64_t s, b, heads, kv_heads, d;

  std::string Name() const { return Shape{s, b, heads, kv_heads, d}.ToString(); }
};
// One, primes, grouped and single kv heads, whole blocks, a little more than one and two blocks.
const Sizes kSizes[] = {{1, 1, 1, 1, 1},   {2, 1, 2, 1, 3},   {5, 2, 4, 2, 8},
                        {64, 1, 1, 1, 16}, {67, 2, 3, 3, 20}, {131, 1, 2, 1, 33}};

class AttentionTest : public testing::TestWithParam<std::tuple<Backend, DType>> {
 protected:
  struct Inputs {
    Tensor q, k, v, dout;
  };

  DType dtype() const { return std::get<1>(GetParam()); }
  const OpContext& tested() const { return host_.context(); }
  const OpContext& oracle() const { return reference_.context(); }
  Tensor Exact(const Tensor& x) const { return AsDoubles(host_, x); }

  Inputs Make(const Sizes& sizes) const {
    const Shape q{sizes.s, sizes.b, sizes.heads, sizes.d};
    const Shape kv{sizes.s, sizes.b, sizes.kv_heads, sizes.d};
    return {RandomStrided(host_, q, dtype(), 1), RandomStrided(host_, kv, dtype(), 2),
            RandomStrided(host_, kv, dtype(), 3), RandomStrided(host_, q, dtype(), 4)};
  }
  AttentionOptions Options(const Sizes& sizes, float dropout) const {
    return {.scale = 1.0f / std::sqrt(static_cast<float>(sizes.d)),
            .dropout = dropout,
            .key = RandomKey::Root(9),
            .first_sample = 3,
            .first_head = 1,
            .total_heads = sizes.heads + 2};
  }
  // Slices of larger tensors, as those of a fused QKV gradient are.
  AttentionGradients Gradients(const Inputs& in) const {
    return {RandomStrided(host_, in.q.shape(), in.q.dtype(), 5),
            RandomStrided(host_, in.k.shape(), in.k.dtype(), 6),
            RandomStrided(host_, in.v.shape(), in.v.dtype(), 7)};
  }

  void ExpectForward(const Sizes& sizes, float dropout) const {
    const Inputs in = Make(sizes);
    const AttentionOptions options = Options(sizes, dropout);
    const AttentionResult actual = CausalAttention(tested(), in.q, in.k, in.v, options);
    const AttentionResult expected =
        CausalAttention(oracle(), Exact(in.q), Exact(in.k), Exact(in.v), options);
    ExpectClose(actual.out, expected.out, kUnits, kScoreUnits, "out " + sizes.Name());
    ExpectClose(actual.logsumexp, expected.logsumexp, 0, kScoreUnits, "logsumexp " + sizes.Name());
  }

  void ExpectBackward(const Sizes& sizes, float dropout) const {
    const Inputs in = Make(sizes);
    const AttentionOptions options = Options(sizes, dropout);
    const AttentionGradients actual = Gradients(in);
    CausalAttentionBackward(tested(), in.q, in.k, in.v,
                            CausalAttention(tested(), in.q, in.k, in.v, options), in.dout, options,
                            actual);
    const Inputs exact{Exact(in.q), Exact(in.k), Exact(in.v), Exact(in.dout)};
    const AttentionGradients expected = Gradients(exact);
    CausalAttentionBackward(oracle(), exact.q, exact.k, exact.v,
                            CausalAttention(oracle(), exact.q, exact.k, exact.v, options),
                            exact.dout, options, expected);
    ExpectClose(actual.dq, expected.dq, kBackwardUnits, kBackwardScoreUnits, "dq " + sizes.Name());
    ExpectClose(actual.dk, expected.dk, kBackwardUnits, kBackwardScoreUnits, "dk " + sizes.Name());
    ExpectClose(actual.dv, expected.dv, kBackwardUnits, kBackwardScoreUnits, "dv " + sizes.Name());
  }

  const Host host_{*std::get<0>(GetParam()).kernels};
  const Host reference_{Reference()};
};

TEST_P(AttentionTest, ForwardMatchesTheReference) {
  for (const Sizes& sizes : kSizes) ExpectForward(sizes, 0.0f);
}

TEST_P(AttentionTest, ForwardWithDropoutMatchesTheReference) {
  for (const Sizes& sizes : kSizes) ExpectForward(sizes, 0.3f);
}

TEST_P(AttentionTest, BackwardMatchesTheReference) {
  for (const Sizes& sizes : kSizes) ExpectBackward(sizes, 0.0f);
}

TEST_P(AttentionTest, BackwardWithDropoutMatchesTheReference) {
  for (const Sizes& sizes : kSizes) ExpectBackward(sizes, 0.3f);
}

TEST_P(AttentionTest, LargeScoresNeitherOverflowNorLoseTheirSoftmax) {
  const Sizes sizes{70, 1, 1, 1, 8};
  const Inputs in = Make(sizes);
  AttentionOptions options = Options(sizes, 0.0f);
  options.scale = 100.0f;  // scores of several hundred, whose exponential is infinite
  const AttentionResult actual = CausalAttention(tested(), in.q, in.k, in.v, options);
  const AttentionResult expected =
      CausalAttention(oracle(), Exact(in.q), Exact(in.k), Exact(in.v), options);
  ExpectClose(actual.logsumexp, expected.logsumexp, 0, kScoreUnits, "logsumexp");
  // An error of a score, in units, counts as many times as the score is large.
  ExpectClose(actual.out, expected.out, kUnits, 2000 * kScoreUnits, "out");
}

TEST_P(AttentionTest, ARowDoesNotSeeLaterKeys) {
  const Sizes sizes{131, 1, 1, 1, 16};
  const Inputs in = Make(sizes), other = {in.q, Clone(host_, in.k), Clone(host_, in.v), in.dout};
  const AttentionOptions options = Options(sizes, 0.0f);
  constexpr int64_t kSeen = 70;
  for (const Tensor& changed : {other.k, other.v}) {
    const Tensor later = Random(host_, {131 - kSeen, 1, 1, 16}, dtype(), 99);
    CopyValues(later, changed.Slice(0, kSeen, 131));
  }
  const AttentionResult a = CausalAttention(tested(), in.q, in.k, in.v, options);
  const AttentionResult b = CausalAttention(tested(), other.q, other.k, other.v, options);
  ExpectSameBits(a.out.Slice(0, 0, kSeen), b.out.Slice(0, 0, kSeen), "rows before the change");
}

// A tensor-parallel rank holds some heads, a data-parallel one some samples.
TEST_P(AttentionTest, DropoutDoesNotDependOnHowHeadsAndSamplesAreSplit) {
  const Sizes sizes{37, 2, 4, 2, 8};
  const Inputs in = Make(sizes);
  const AttentionOptions options = Options(sizes, 0.5f);
  const Tensor whole = CausalAttention(tested(), in.q, in.k, in.v, options).out;
  const auto part = [](const Tensor& x, int64_t first_head, int64_t heads) {
    return x.Slice(1, 1, 2).Slice(2, first_head, first_head + heads);
  };
  AttentionOptions of_part = options;
  of_part.first_sample += 1;
  of_part.first_head += 2;
  const Tensor out =
      CausalAttention(tested(), part(in.q, 2, 2), part(in.k, 1, 1), part(in.v, 1, 1), of_part).out;
  ExpectSameBits(out, Clone(host_, part(whole, 2, 2)), "the part and its place in the whole");
}

TEST_P(AttentionTest, BackwardWritesNothingBesideItsViews) {
  const Sizes sizes{5, 1, 2, 2, 3};
  const Inputs in = Make(sizes);
  const AttentionOptions options = Options(sizes, 0.0f);
  const Tensor fused = Random(host_, {5, 1, 2, 12}, dtype(), 8);
  const Tensor before = Clone(host_, fused.Slice(3, 9, 12));
  CausalAttentionBackward(tested(), in.q, in.k, in.v,
                          CausalAttention(tested(), in.q, in.k, in.v, options), in.dout, options,
                          {fused.Slice(3, 0, 3), fused.Slice(3, 3, 6), fused.Slice(3, 6, 9)});
  ExpectSameBits(Clone(host_, fused.Slice(3, 9, 12)), before, "beside the gradients");
}

TEST_P(AttentionTest, BitsDoNotDependOnThreads) {
  const Sizes sizes{67, 3, 2, 1, 8};
  const Inputs in = Make(sizes);
  const AttentionOptions options = Options(sizes, 0.1f);
  const auto run = [&](int threads) {
    SetLoopThreads(threads);
    const AttentionResult forward = CausalAttention(tested(), in.q, in.k, in.v, options);
    const AttentionGradients gradients = Gradients(in);
    CausalAttentionBackward(tested(), in.q, in.k, in.v, forward, in.dout, options, gradients);
    SetLoopThreads(1);
    return std::vector<Tensor>{forward.out, forward.logsumexp, Clone(host_, gradients.dq),
                               Clone(host_, gradients.dk), Clone(host_, gradients.dv)};
  };
  const std::vector<Tensor> one = run(1), two = run(2);
  for (size_t i = 0; i < one.size(); ++i) ExpectSameBits(one[i], two[i], "1 and 2 threads");
}

INSTANTIATE_TEST_SUITE_P(Backends, AttentionTest,
                         testing::Combine(testing::Values(Backend{"Cpu", &Cpu()}),
                                          testing::ValuesIn(StoredDTypes())),
                         [](const auto& info) {
                           return BackendName(std::get<0>(info.param)) +
                                  DTypeName(std::get<1>(info.param));
                         });

TEST(AttentionDeathTest, HeadsMustGroupOverKeyHeads) {
  const Host host(Cpu());
  const Tensor q = host.Empty({2, 1, 3, 4}, DType::kF32), k = host.Empty({2, 1, 2, 4}, DType::kF32);
  EXPECT_DEATH(CausalAttention(host.context(), q, k, k, {}),
               "3 query heads do not group over 2 kv heads");
}

}  // namespace
}  // namespace forerun::conformance
