// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/dtype.h"

#include <cmath>
#include <limits>
#include <sstream>

#include "gtest/gtest.h"

namespace forerun {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The value of a binary format by its definition: sign, exponent, mantissa.
double Decode(int bits, int exponent_bits, int mantissa_bits) {
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double magnitude;
  if (exponent == (1 << exponent_bits) - 1) {
    magnitude = mantissa == 0 ? kInfinity : std::nan("");
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  } else {
    magnitude = std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double ValueOf(BFloat16, int bits) { return Decode(bits, 8, 7); }
double ValueOf(Float16, int bits) { return Decode(bits, 5, 10); }

template <typename T>
class SixteenBits : public testing::Test {};
using SixteenBitTypes = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(SixteenBits, SixteenBitTypes);

TYPED_TEST(SixteenBits, EveryValueIsExactAsAFloatAndComesBack) {
  for (int bits = 0; bits <= 0xffff; ++bits) {
    TypeParam stored{};
    stored.bits = static_cast<uint16_t>(bits);
    const double expected = ValueOf(TypeParam{}, bits);
    const float value = static_cast<float>(stored);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(TypeParam(value)))) << bits;
    } else {
      ASSERT_EQ(value, expected) << bits;
      ASSERT_EQ(TypeParam(value).bits, bits);
    }
  }
}

TYPED_TEST(SixteenBits, FloatsRoundToTheNearestAndTiesToEven) {
  for (int bits = 0; ValueOf(TypeParam{}, bits + 1) < kInfinity; ++bits) {
    const double low = ValueOf(TypeParam{}, bits), high = ValueOf(TypeParam{}, bits + 1);
    const auto middle = static_cast<float>((low + high) / 2);  // exact: floats have digits to spare
    ASSERT_EQ(TypeParam(middle).bits, bits + bits % 2) << middle;
    ASSERT_EQ(TypeParam(std::nextafter(middle, 0.0f)).bits, bits) << middle;
    ASSERT_EQ(TypeParam(std::nextafter(middle, kInfinity)).bits, bits + 1) << middle;
    ASSERT_EQ(TypeParam(-middle).bits, 0x8000 | TypeParam(middle).bits);
  }
}

TYPED_TEST(SixteenBits, WhatIsTooLargeIsInfinite) {
  EXPECT_EQ(static_cast<float>(TypeParam(std::numeric_limits<float>::max())), kInfinity);
  EXPECT_EQ(static_cast<float>(TypeParam(-kInfinity)), -kInfinity);
  EXPECT_EQ(TypeParam(-0.0f).bits, 0x8000);
}

TEST(Float16, TheLargestValueEndsWhereRoundingGoesToInfinity) {
  EXPECT_EQ(static_cast<float>(Float16(65504.0f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(Float16(std::nextafter(65520.0f, 0.0f))), 65504.0f);
  EXPECT_EQ(static_cast<float>(Float16(65520.0f)), kInfinity);
}

TEST(DType, EveryDTypeHasTheSizeOfItsType) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF64}) {
    EXPECT_TRUE(IsFloating(dtype));
    VisitFloating(dtype, [dtype](auto type) {
      EXPECT_EQ(SizeOf(dtype), static_cast<int64_t>(sizeof type));
      EXPECT_EQ(DTypeOf<decltype(type)>::value, dtype);
    });
  }
  EXPECT_EQ(SizeOf(DType::kI32), 4);
  EXPECT_EQ(SizeOf(DType::kI64), 8);
  EXPECT_EQ(SizeOf(DType::kU8), 1);
  EXPECT_DEATH(VisitFloating(DType::kI32, [](auto) {}), "floating dtype is needed, got int32");
}

TEST(DType, PrintsItsName) {
  std::ostringstream out;
  out << DType::kF32 << ' ' << DType::kBF16 << ' ' << DType::kU8;
  EXPECT_EQ(out.str(), "fp32 bf16 uint8");
}

}  // namespace
}  // namespace forerun
