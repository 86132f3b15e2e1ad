// SPDX-License-Identifier: Apache-2.0
#include "core/ops/norm.h"

#include <cmath>
#include <tuple>

#include "core/base/parallel_for.h"
#include "core/ops/conformance/testing.h"
#include "core/ops/cpu/norm.h"
#include "core/ops/reference/norm.h"
#include "gtest/gtest.h"

// Bounds: the final rounding, and fp32 units of the largest value for sums over a row (16 partial
// sums) and over rows (blocks of 64). Statistics and weight gradients are fp32 in any dtype.
namespace forerun::conformance {
namespace {

constexpr double kUnits = 1, kRowUnits = 16, kColumnUnits = 64;
constexpr float kEpsilon = 1e-5f;

const KernelTable& Reference() {
  static const KernelTable table{.norm = &reference::Norm()};
  return table;
}
const KernelTable& Cpu() {
  static const KernelTable table{.norm = &cpu::Norm()};
  return table;
}

class NormTest : public testing::TestWithParam<std::tuple<Backend, DType>> {
 protected:
  DType dtype() const { return std::get<1>(GetParam()); }
  const OpContext& tested() const { return host_.context(); }
  const OpContext& oracle() const { return reference_.context(); }
  Tensor Exact(const Tensor& x) const { return AsDoubles(host_, x); }
  Tensor Gradient(int64_t n, uint64_t seed) const { return Random(host_, {n}, DType::kF32, seed); }

  const Host host_{*std::get<0>(GetParam()).kernels};
  const Host reference_{Reference()};
};

const Shape kShapes[] = {{1},        {7},    {1, 1},    {3, 1},  {5, 17},
                         {2, 3, 64}, {0, 4}, {131, 33}, {3, 515}};

TEST_P(NormTest, LayerNormMatchesTheReference) {
  for (const Shape& shape : kShapes) {
    const Tensor x = RandomStrided(host_, shape, dtype(), 1);
    const Tensor gamma = Random(host_, {shape[-1]}, dtype(), 2);
    const Tensor beta = Random(host_, {shape[-1]}, dtype(), 3);
    const LayerNormResult y = LayerNorm(tested(), x, gamma, beta, kEpsilon);
    const LayerNormResult e = LayerNorm(oracle(), Exact(x), Exact(gamma), Exact(beta), kEpsilon);
    // One element a row has variance zero: rstd is 316.
    ExpectClose(y.y, e.y, kUnits, kRowUnits, "y " + shape.ToString());
    ExpectClose(y.mean, e.mean, kUnits, kRowUnits, "mean " + shape.ToString());
    ExpectClose(y.rstd, e.rstd, kUnits, kRowUnits, "rstd " + shape.ToString());
  }
}

// In one pass (mean of squares less square of mean) fp32 would lose all digits here.
TEST_P(NormTest, LayerNormOfRowsFarFromZeroKeepsItsVariance) {
  Tensor x = host_.Empty({2, 256}, DType::kF32);
  for (int64_t i = 0; i < 512; ++i) x.mutable_data<float>()[i] = 10000.0f + (i % 2 == 0 ? 1 : -1);
  const Tensor ones = Random(host_, {256}, DType::kF32, 1, 0.0);
  const LayerNormResult result = LayerNorm(tested(), x, ones, ones, kEpsilon);
  for (double rstd : Values(result.rstd)) EXPECT_NEAR(rstd, 1.0, 1e-4);
}

TEST_P(NormTest, LayerNormBackwardInputMatchesTheReference) {
  for (const Shape& shape : kShapes) {
    const Tensor x = RandomStrided(host_, shape, dtype(), 1);
    const Tensor dy = RandomStrided(host_, shape, dtype(), 2);
    const Tensor gamma = Random(host_, {shape[-1]}, dtype(), 3);
    const LayerNormResult y = LayerNorm(tested(), x, gamma, gamma, kEpsilon);
    const Tensor dx = LayerNormBackwardInput(tested(), x, gamma, y.mean, y.rstd, dy);
    const Tensor e =
        LayerNormBackwardInput(oracle(), Exact(x), Exact(gamma), y.mean, y.rstd, Exact(dy));
    // With one or two elements a row dx is a small rest of large terms.
    const double terms = shape[-1] == 1 ? 1000.0 : 1.0;
    ExpectClose(dx, e, kUnits, terms * kRowUnits, shape.ToString());
  }
}

TEST_P(NormTest, LayerNormBackwardWeightMatchesTheReference) {
  for (const Shape& shape : kShapes) {
    for (bool accumulate : {false, true}) {
      const int64_t n = shape[-1];
      const Tensor x = RandomStrided(host_, shape, dtype(), 1);
      const Tensor dy = RandomStrided(host_, shape, dtype(), 2);
      const Tensor gamma = Random(host_, {n}, dtype(), 3);
      const LayerNormResult y = LayerNorm(tested(), x, gamma, gamma, kEpsilon);
      const Tensor dgamma = Gradient(n, 4), dbeta = Gradient(n, 5);
      const Tensor egamma = Clone(host_, dgamma), ebeta = Clone(host_, dbeta);
      LayerNormBackwardWeight(tested(), x, y.mean, y.rstd, dy, accumulate, dgamma, !accumulate,
                              dbeta);
      LayerNormBackwardWeight(oracle(), Exact(x), y.mean, y.rstd, Exact(dy), accumulate, egamma,
                              !accumulate, ebeta);
      ExpectClose(dgamma, egamma, kUnits, kColumnUnits, "dgamma " + shape.ToString());
      ExpectClose(dbeta, ebeta, kUnits, kColumnUnits, "dbeta " + shape.ToString());
    }
  }
}

TEST_P(NormTest, AFrozenWeightNeedsNoGradient) {
  const Tensor x = Random(host_, {9, 12}, dtype(), 1), gamma = Random(host_, {12}, dtype(), 2);
  const LayerNormResult y = LayerNorm(tested(), x, gamma, gamma, kEpsilon);
  const Tensor both = Gradient(12, 3), dgamma = Gradient(12, 3), dbeta = Gradient(12, 4);
  LayerNormBackwardWeight(tested(), x, y.mean, y.rstd, x, false, dgamma, false, Tensor());
  LayerNormBackwardWeight(tested(), x, y.mean, y.rstd, x, false, Tensor(), false, dbeta);
  const Tensor other = Gradient(12, 5);
  LayerNormBackwardWeight(tested(), x, y.mean, y.rstd, x, false, both, false, other);
  ExpectSameBits(dgamma, both, "dgamma");
  ExpectSameBits(dbeta, other, "dbeta");
}

TEST_P(NormTest, RmsNormMatchesTheReference) {
  for (const Shape& shape : kShapes) {
    const Tensor x = RandomStrided(host_, shape, dtype(), 1);
    const Tensor gamma = Random(host_, {shape[-1]}, dtype(), 2);
    const RmsNormResult y = RmsNorm(tested(), x, gamma, kEpsilon);
    const RmsNormResult e = RmsNorm(oracle(), Exact(x), Exact(gamma), kEpsilon);
    ExpectClose(y.y, e.y, kUnits, kRowUnits, "y " + shape.ToString());
    ExpectClose(y.rrms, e.rrms, kUnits, kRowUnits, "rrms " + shape.ToString());
  }
}

TEST_P(NormTest, RmsNormBackwardMatchesTheReference) {
  for (const Shape& shape : kShapes) {
    const int64_t n = shape[-1];
    const Tensor x = RandomStrided(host_, shape, dtype(), 1);
    const Tensor dy = RandomStrided(host_, shape, dtype(), 2);
    const Tensor gamma = Random(host_, {n}, dtype(), 3);
    const Tensor rrms = RmsNorm(tested(), x, gamma, kEpsilon).rrms;
    ExpectClose(RmsNormBackwardInput(tested(), x, gamma, rrms, dy),
                RmsNormBackwardInput(oracle(), Exact(x), Exact(gamma), rrms, Exact(dy)), kUnits,
                kRowUnits * 4, shape.ToString());
    for (bool accumulate : {false, true}) {
      const Tensor dgamma = Gradient(n, 4), e = Clone(host_, dgamma);
      RmsNormBackwardWeight(tested(), x, rrms, dy, accumulate, dgamma);
      RmsNormBackwardWeight(oracle(), Exact(x), rrms, Exact(dy), accumulate, e);
      ExpectClose(dgamma, e, kUnits, kColumnUnits, "dgamma " + shape.ToString());
    }
  }
}

TEST_P(NormTest, BitsDependOnNeitherThreadsNorOtherRows) {
  const Tensor x = Random(host_, {71, 259}, dtype(), 1), dy = Random(host_, {71, 259}, dtype(), 2);
  const Tensor gamma = Random(host_, {259}, dtype(), 3);
  const auto run = [&](int threads) {
    SetLoopThreads(threads);
    const LayerNormResult y = LayerNorm(tested(), x, gamma, gamma, kEpsilon);
    const Tensor dgamma = Gradient(259, 4), dbeta = Gradient(259, 5);
    LayerNormBackwardWeight(tested(), x, y.mean, y.rstd, dy, true, dgamma, true, dbeta);
    const Tensor dx = LayerNormBackwardInput(tested(), x, gamma, y.mean, y.rstd, dy);
    const RmsNormResult rms = RmsNorm(tested(), x, gamma, kEpsilon);
    SetLoopThreads(1);
    return std::vector<Tensor>{y.y, y.mean, y.rstd, dgamma, dbeta, dx, rms.y, rms.rrms};
  };
  const std::vector<Tensor> one = run(1), two = run(2);
  for (size_t i = 0; i < one.size(); ++i) ExpectSameBits(two[i], one[i], "result");
  const Tensor last = LayerNorm(tested(), x.Slice(0, 70, 71), gamma, gamma, kEpsilon).y;
  ExpectSameBits(last, one[0].Slice(0, 70, 71), "one row");
}

INSTANTIATE_TEST_SUITE_P(Backends, NormTest,
                         testing::Combine(testing::Values(Backend{"cpu", &Cpu()},
                                                          Backend{"reference", &Reference()}),
                                          testing::ValuesIn(StoredDTypes())),
                         [](const auto& info) {
                           return BackendName(std::get<0>(info.param)) + "_" +
                                  DTypeName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace forerun::conformance
