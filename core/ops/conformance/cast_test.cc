// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cast.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "core/base/parallel_for.h"
#include "core/ops/conformance/testing.h"
#include "core/ops/cpu/cast.h"
#include "core/ops/reference/cast.h"
#include "gtest/gtest.h"

// Bound: none. A cast is one rounding to nearest even, so backends agree in every bit.
namespace forerun::conformance {
namespace {

const KernelTable& Reference() {
  static const KernelTable table{.cast = &reference::Cast()};
  return table;
}
const KernelTable& Cpu() {
  static const KernelTable table{.cast = &cpu::Cast()};
  return table;
}

constexpr DType kFloating[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kF64};

class CastTest : public testing::TestWithParam<std::tuple<Backend, DType>> {
 protected:
  DType from() const { return std::get<1>(GetParam()); }
  const OpContext& tested() const { return host_.context(); }
  const OpContext& oracle() const { return reference_.context(); }

  const Host host_{*std::get<0>(GetParam()).kernels};
  const Host reference_{Reference()};
};

TEST_P(CastTest, HasTheBitsOfTheReference) {
  for (DType to : kFloating) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{3, 1031}, Shape{0, 4}}) {
      const Tensor x = Random(host_, shape, from(), 1, /*stddev=*/100.0);
      ExpectSameBits(Cast(tested(), x, to), Cast(oracle(), x, to), DTypeName(to));
    }
  }
}

// Magnitudes from below the smallest subnormal to infinity, of both signs.
TEST_P(CastTest, EveryMagnitudeRoundsOnce) {
  Tensor exact = host_.Empty({2 * 600}, DType::kF64);
  for (int64_t i = 0; i < 600; ++i) {
    const double value = std::ldexp(1.0 + i / 601.0, static_cast<int>(i) - 300);
    exact.mutable_data<double>()[2 * i] = value;
    exact.mutable_data<double>()[2 * i + 1] = -value;
  }
  const Tensor x = Cast(oracle(), exact, from());
  for (DType to : kFloating) {
    ExpectSameBits(Cast(tested(), x, to), Cast(oracle(), x, to), DTypeName(to));
  }
}

TEST_P(CastTest, TiesGoToTheEvenNeighbour) {
  if (from() != DType::kF32 && from() != DType::kF64) GTEST_SKIP() << "16 bits cannot hold them";
  const Tensor x =
      FromValues(host_, {4}, from(), {1 + 0x1p-8, 1 + 0x3p-8, 1 + 0x1p-11, 1 + 0x3p-11});
  const std::vector<double> bf16 = Values(Cast(tested(), x, DType::kBF16));
  const std::vector<double> fp16 = Values(Cast(tested(), x, DType::kF16));
  EXPECT_EQ(bf16[0], 1.0);
  EXPECT_EQ(bf16[1], 1 + 0x1p-6);
  EXPECT_EQ(fp16[2], 1.0);
  EXPECT_EQ(fp16[3], 1 + 0x1p-9);
}

// Rounding to float first would make a tie of it, and lose the last bit.
TEST_P(CastTest, DoublesAreRoundedOnce) {
  if (from() != DType::kF64) GTEST_SKIP() << "needs the digits of a double";
  const Tensor x = FromValues(host_, {2}, from(), {1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-11 + 0x1p-40});
  EXPECT_EQ(Values(Cast(tested(), x, DType::kBF16))[0], 1 + 0x1p-7);
  EXPECT_EQ(Values(Cast(tested(), x, DType::kF16))[1], 1 + 0x1p-10);
}

TEST_P(CastTest, SpecialValuesStay) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor x = FromValues(host_, {5}, from(), {0.0, -0.0, infinity, -infinity, std::nan("")});
  for (DType to : kFloating) {
    const std::vector<double> y = Values(Cast(tested(), x, to));
    EXPECT_FALSE(std::signbit(y[0]));
    EXPECT_TRUE(std::signbit(y[1]));
    EXPECT_EQ(y[2], infinity);
    EXPECT_EQ(y[3], -infinity);
    EXPECT_TRUE(std::isnan(y[4]));
  }
}

TEST_P(CastTest, ThreadsDoNotChangeTheBits) {
  const Tensor x = Random(host_, {70001}, from(), 1);
  for (DType to : kFloating) {
    const Tensor one = Cast(tested(), x, to);
    SetLoopThreads(2);
    ExpectSameBits(Cast(tested(), x, to), one, DTypeName(to));
    SetLoopThreads(1);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, CastTest,
                         testing::Combine(testing::Values(Backend{"cpu", &Cpu()},
                                                          Backend{"reference", &Reference()}),
                                          testing::ValuesIn(kFloating)),
                         [](const auto& info) {
                           return BackendName(std::get<0>(info.param)) + "_" +
                                  DTypeName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace forerun::conformance
