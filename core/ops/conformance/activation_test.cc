// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation.h"

#include <cmath>
#include <tuple>

#include "core/base/parallel_for.h"
#include "core/ops/conformance/testing.h"
#include "core/ops/cpu/activation.h"
#include "core/ops/reference/activation.h"
#include "gtest/gtest.h"

// Bound: the final rounding, and a few fp32 units for the exponential and what follows it, of the
// largest value.
namespace forerun::conformance {
namespace {

constexpr double kUnits = 1, kFp32Units = 6;

const KernelTable& Reference() {
  static const KernelTable table{.activation = &reference::Activation()};
  return table;
}
const KernelTable& Cpu() {
  static const KernelTable table{.activation = &cpu::Activation()};
  return table;
}

class ActivationTest : public testing::TestWithParam<std::tuple<Backend, DType>> {
 protected:
  DType dtype() const { return std::get<1>(GetParam()); }
  const OpContext& tested() const { return host_.context(); }
  const OpContext& oracle() const { return reference_.context(); }
  Tensor Exact(const Tensor& x) const { return AsDoubles(host_, x); }

  const Host host_{*std::get<0>(GetParam()).kernels};
  const Host reference_{Reference()};
};

const Shape kShapes[] = {{}, {1}, {7}, {1031}, {5, 17}, {2, 3, 64}, {0, 4}, {3, 2003}};
const Shape kGatedShapes[] = {{2}, {14}, {1030}, {5, 34}, {2, 3, 64}, {0, 4}, {3, 1202}};
constexpr GeluKind kKinds[] = {GeluKind::kTanh, GeluKind::kExact};

TEST_P(ActivationTest, GeluMatchesTheReference) {
  for (GeluKind kind : kKinds) {
    for (const Shape& shape : kShapes) {
      const Tensor x = Random(host_, shape, dtype(), 1, /*stddev=*/3.0);
      ExpectClose(Gelu(tested(), x, kind), Gelu(oracle(), Exact(x), kind), kUnits, kFp32Units,
                  shape.ToString());
    }
  }
}

TEST_P(ActivationTest, GeluBackwardMatchesTheReference) {
  for (GeluKind kind : kKinds) {
    for (const Shape& shape : kShapes) {
      const Tensor x = Random(host_, shape, dtype(), 1, /*stddev=*/3.0);
      const Tensor dy = Random(host_, shape, dtype(), 2);
      ExpectClose(GeluBackward(tested(), x, dy, kind),
                  GeluBackward(oracle(), Exact(x), Exact(dy), kind), kUnits, kFp32Units,
                  shape.ToString());
    }
  }
}

TEST_P(ActivationTest, GeluIsTheIdentityOrZeroFarOut) {
  const Tensor x = FromValues(host_, {6}, dtype(), {-60000, -100, -20, 20, 100, 60000});
  const Tensor expected = FromValues(host_, {6}, DType::kF64, {0, 0, 0, 20, 100, 60000});
  const Tensor slopes = FromValues(host_, {6}, DType::kF64, {0, 0, 0, 1, 1, 1});
  const Tensor ones = FromValues(host_, {6}, dtype(), {1, 1, 1, 1, 1, 1});
  for (GeluKind kind : kKinds) {
    ExpectClose(Gelu(tested(), x, kind), expected, kUnits, kFp32Units, "value");
    ExpectClose(GeluBackward(tested(), x, ones, kind), slopes, kUnits, kFp32Units, "slope");
  }
}

TEST_P(ActivationTest, NanStaysNan) {
  const Tensor x = FromValues(host_, {2, 2}, dtype(), {std::nan(""), 1, 2, std::nan("")});
  for (GeluKind kind : kKinds) {
    EXPECT_TRUE(std::isnan(Values(Gelu(tested(), x, kind))[0]));
    EXPECT_TRUE(std::isnan(Values(GeluBackward(tested(), x, x, kind))[3]));
  }
  for (double value : Values(Swiglu(tested(), x))) EXPECT_TRUE(std::isnan(value));
}

TEST_P(ActivationTest, SwigluMatchesTheReference) {
  for (const Shape& shape : kGatedShapes) {
    const Tensor x = Random(host_, shape, dtype(), 1, /*stddev=*/3.0);
    ExpectClose(Swiglu(tested(), x), Swiglu(oracle(), Exact(x)), kUnits, kFp32Units,
                shape.ToString());
  }
}

TEST_P(ActivationTest, SwigluBackwardMatchesTheReference) {
  for (const Shape& shape : kGatedShapes) {
    const Tensor x = Random(host_, shape, dtype(), 1, /*stddev=*/3.0);
    const Tensor dy = Random(host_, SwigluShape(shape), dtype(), 2);
    ExpectClose(SwigluBackward(tested(), x, dy), SwigluBackward(oracle(), Exact(x), Exact(dy)),
                kUnits, kFp32Units, shape.ToString());
  }
}

TEST_P(ActivationTest, SwigluOfHugeGatesIsFinite) {
  const Tensor x = FromValues(host_, {2, 2}, dtype(), {-60000, 2, 300, 2});
  ExpectClose(Swiglu(tested(), x), FromValues(host_, {2, 1}, DType::kF64, {0, 600}), kUnits,
              kFp32Units, "value");
  const Tensor ones = FromValues(host_, {2, 1}, dtype(), {1, 1});
  ExpectClose(SwigluBackward(tested(), x, ones),
              FromValues(host_, {2, 2}, DType::kF64, {0, 0, 2, 300}), kUnits, kFp32Units,
              "gradient");
}

TEST_P(ActivationTest, StridedRowsGiveTheBitsOfContiguousOnes) {
  const Tensor x = RandomStrided(host_, {6, 5, 38}, dtype(), 1);
  const Tensor dy = RandomStrided(host_, {6, 5, 38}, dtype(), 2);
  const Tensor half = RandomStrided(host_, {6, 5, 19}, dtype(), 3);
  const Tensor dense = Clone(host_, x), dy_dense = Clone(host_, dy);
  for (GeluKind kind : kKinds) {
    ExpectSameBits(Gelu(tested(), x, kind), Gelu(tested(), dense, kind), "Gelu");
    ExpectSameBits(GeluBackward(tested(), x, dy, kind),
                   GeluBackward(tested(), dense, dy_dense, kind), "GeluBackward");
  }
  ExpectSameBits(Swiglu(tested(), x), Swiglu(tested(), dense), "Swiglu");
  ExpectSameBits(SwigluBackward(tested(), x, half),
                 SwigluBackward(tested(), dense, Clone(host_, half)), "SwigluBackward");
}

TEST_P(ActivationTest, BitsDependOnNoPositionLengthOrThreadCount) {
  const Tensor x = Random(host_, {33010}, dtype(), 1, /*stddev=*/3.0);
  const Tensor dy = Random(host_, {16505}, dtype(), 2);
  SetLoopThreads(2);
  const Tensor gated = Swiglu(tested(), x), dgated = SwigluBackward(tested(), x, dy);
  const Tensor gelu = Gelu(tested(), x, GeluKind::kTanh);
  const Tensor slope = GeluBackward(tested(), x, x, GeluKind::kExact);
  SetLoopThreads(1);
  ExpectSameBits(Swiglu(tested(), x), gated, "Swiglu");
  ExpectSameBits(SwigluBackward(tested(), x, dy), dgated, "SwigluBackward");
  ExpectSameBits(Gelu(tested(), x, GeluKind::kTanh), gelu, "Gelu");
  for (int64_t begin : {1, 5, 100}) {
    for (int64_t length : {1, 7, 33}) {
      const Tensor part = x.Slice(0, begin, begin + length);
      ExpectSameBits(Gelu(tested(), part, GeluKind::kTanh), gelu.Slice(0, begin, begin + length),
                     "part of Gelu");
      ExpectSameBits(GeluBackward(tested(), part, part, GeluKind::kExact),
                     slope.Slice(0, begin, begin + length), "part of GeluBackward");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ActivationTest,
                         testing::Combine(testing::Values(Backend{"cpu", &Cpu()},
                                                          Backend{"reference", &Reference()}),
                                          testing::ValuesIn(StoredDTypes())),
                         [](const auto& info) {
                           return BackendName(std::get<0>(info.param)) + "_" +
                                  DTypeName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace forerun::conformance
