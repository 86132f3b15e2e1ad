// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cross_entropy.h"

#include <string>
#include <tuple>
#include <vector>

#include "core/base/parallel_for.h"
#include "core/ops/conformance/testing.h"
#include "core/ops/cpu/cross_entropy.h"
#include "core/ops/reference/cross_entropy.h"
#include "gtest/gtest.h"

// Bounds: RowMax is exact. Sums of exponentials (1.5 ulp each, of the largest that are one) are
// within kSumUnits of fp32, losses too. Gradients lie in [-|dloss|, |dloss|]: one unit for their
// rounding and kGradientUnits of fp32 for the exponential and its sum.
namespace forerun::conformance {
namespace {

constexpr double kUnits = 1, kSumUnits = 16, kGradientUnits = 16;

const KernelTable& Reference() {
  static const KernelTable table{.cross_entropy = &reference::CrossEntropy()};
  return table;
}
const KernelTable& Cpu() {
  static const KernelTable table{.cross_entropy = &cpu::CrossEntropy()};
  return table;
}

struct Case {
  int64_t n, v;
  VocabularyRange range;

  std::string Name() const {
    return Shape{n, v}.ToString() + " from " + std::to_string(range.first_column) + " of " +
           std::to_string(range.valid_columns);
  }
};
// Whole vocabularies, the second half of one, with padding, and a part that is padding only.
const Case kCases[] = {{1, 1, {0, 1}},       {3, 7, {0, 7}},    {5, 64, {64, 128}},
                       {2, 1031, {0, 1029}}, {4, 40, {40, 57}}, {3, 16, {32, 29}}};

class CrossEntropyTest : public testing::TestWithParam<std::tuple<Backend, DType>> {
 protected:
  DType dtype() const { return std::get<1>(GetParam()); }
  const OpContext& tested() const { return host_.context(); }
  const OpContext& oracle() const { return reference_.context(); }

  Tensor Logits(const Case& c) const {
    return RandomStrided(host_, {c.n, c.v}, dtype(), 1, 3, /*stddev=*/4.0);
  }
  Tensor Targets(const Case& c) const {
    return RandomTokens(host_, {c.n}, 0, static_cast<int32_t>(c.range.valid_columns), 2);
  }
  // As if other ranks held larger logits too.
  Tensor GlobalMax(const Case& c) const {
    const Tensor row_max = host_.Empty({c.n}, DType::kF32);
    for (int64_t i = 0; i < c.n; ++i) row_max.mutable_data<float>()[i] = 20.0f + 0.5f * i;
    return row_max;
  }

  const Host host_{*std::get<0>(GetParam()).kernels};
  const Host reference_{Reference()};
};

TEST_P(CrossEntropyTest, RowMaxIsExactAndSkipsPadding) {
  for (const Case& c : kCases) {
    const Tensor logits = Logits(c);
    ExpectSameBits(RowMax(tested(), logits, c.range), RowMax(oracle(), logits, c.range), c.Name());
  }
}

TEST_P(CrossEntropyTest, LossOfAWholeVocabularyMatchesTheReference) {
  for (const Case& c : kCases) {
    if (c.range.first_column != 0) continue;
    const Tensor logits = Logits(c), targets = Targets(c);
    const auto loss = [&](const OpContext& context) {
      const Tensor row_max = RowMax(context, logits, c.range);
      const Tensor sums = SumExpAndTarget(context, logits, targets, row_max, c.range);
      return CrossEntropyLoss(context, sums);
    };
    ExpectClose(loss(tested()), loss(oracle()), 0, kSumUnits, c.Name());
  }
}

TEST_P(CrossEntropyTest, SumsOfAPartMatchTheReference) {
  for (const Case& c : kCases) {
    const Tensor logits = Logits(c), targets = Targets(c);
    for (const Tensor& row_max : {GlobalMax(c), RowMax(oracle(), logits, {0, c.v})}) {
      const Tensor actual = SumExpAndTarget(tested(), logits, targets, row_max, c.range);
      const Tensor expected = SumExpAndTarget(oracle(), logits, targets, row_max, c.range);
      ExpectClose(actual, expected, 0, kSumUnits, c.Name());
    }
  }
}

TEST_P(CrossEntropyTest, BackwardMatchesTheReference) {
  for (const Case& c : kCases) {
    const Tensor logits = Logits(c), targets = Targets(c);
    const Tensor row_max = RowMax(oracle(), logits, {0, c.v});
    const Tensor sums = SumExpAndTarget(oracle(), logits, targets, row_max, {0, c.v});
    const Tensor dloss = Random(host_, {c.n}, DType::kF32, 3);
    const Tensor exact = AsDoubles(host_, logits);
    ExpectClose(CrossEntropyBackward(tested(), logits, targets, row_max, sums, dloss, c.range),
                CrossEntropyBackward(oracle(), exact, targets, row_max, sums, dloss, c.range),
                kUnits, kGradientUnits, c.Name());
  }
}

TEST_P(CrossEntropyTest, LogitsMayBecomeTheirGradient) {
  for (const Case& c : kCases) {
    const Tensor logits = Clone(host_, Logits(c)), targets = Targets(c);
    const Tensor row_max = RowMax(oracle(), logits, {0, c.v});
    const Tensor sums = SumExpAndTarget(oracle(), logits, targets, row_max, {0, c.v});
    const Tensor dloss = Random(host_, {c.n}, DType::kF32, 3);
    const Tensor apart =
        CrossEntropyBackward(tested(), logits, targets, row_max, sums, dloss, c.range);
    CrossEntropyBackwardInPlace(tested(), logits, targets, row_max, sums, dloss, c.range);
    ExpectSameBits(logits, apart, c.Name());
  }
}

TEST_P(CrossEntropyTest, PaddingHasNoGradient) {
  const Case c{2, 20, {0, 13}};
  const Tensor logits = Logits(c), targets = Targets(c);
  const Tensor row_max = RowMax(tested(), logits, c.range);
  const Tensor sums = SumExpAndTarget(tested(), logits, targets, row_max, c.range);
  const Tensor dloss = Random(host_, {c.n}, DType::kF32, 3);
  const Tensor gradient =
      CrossEntropyBackward(tested(), logits, targets, row_max, sums, dloss, c.range);
  for (double value : Values(gradient.Slice(1, 13, 20))) EXPECT_EQ(value, 0.0);
}

TEST_P(CrossEntropyTest, BitsDoNotDependOnThreads) {
  const Case c{67, 517, {0, 511}};
  const Tensor logits = Logits(c), targets = Targets(c);
  const auto run = [&](int threads) {
    SetLoopThreads(threads);
    const Tensor row_max = RowMax(tested(), logits, c.range);
    const Tensor sums = SumExpAndTarget(tested(), logits, targets, row_max, c.range);
    const Tensor gradient =
        CrossEntropyBackward(tested(), logits, targets, row_max, sums, row_max, c.range);
    SetLoopThreads(1);
    return std::vector<Tensor>{row_max, sums, gradient};
  };
  const std::vector<Tensor> one = run(1), two = run(2);
  for (size_t i = 0; i < one.size(); ++i) ExpectSameBits(one[i], two[i], "1 and 2 threads");
}

INSTANTIATE_TEST_SUITE_P(Backends, CrossEntropyTest,
                         testing::Combine(testing::Values(Backend{"Cpu", &Cpu()}),
                                          testing::ValuesIn(StoredDTypes())),
                         [](const auto& info) {
                           return BackendName(std::get<0>(info.param)) +
                                  DTypeName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace forerun::conformance
