// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/math.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace forerun::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The largest error in units of the last place of the exact result, over floats of both signs with
// magnitudes in [low, high], every 997th.
template <typename Function, typename Exact>
double LargestError(float low, float high, Function function, Exact exact) {
  uint32_t first, last;
  std::memcpy(&first, &low, sizeof first);
  std::memcpy(&last, &high, sizeof last);
  double largest = 0.0;
  for (uint32_t bits = first; bits <= last; bits += 997) {
    float x;
    std::memcpy(&x, &bits, sizeof x);
    for (float argument : {x, -x}) {
      const double expected = exact(static_cast<double>(argument));
      const float nearest = static_cast<float>(expected);
      const double ulp = std::nextafter(std::abs(nearest), kInfinity) - std::abs(nearest);
      const double actual = static_cast<double>(function(argument));
      largest = std::max(largest, std::abs(actual - expected) / ulp);
    }
  }
  return largest;
}

TEST(Math, ExpIsWithinOneAndAHalfUlp) {
  EXPECT_LE(LargestError(1e-30f, 87.3f, Exp, [](double x) { return std::exp(x); }), 1.5);
}

TEST(Math, TanhIsWithinTwoUlp) {
  EXPECT_LE(LargestError(1e-30f, 12.0f, Tanh, [](double x) { return std::tanh(x); }), 2.0);
}

TEST(Math, ErfIsWithinTwoUlp) {
  EXPECT_LE(LargestError(1e-30f, 6.0f, Erf, [](double x) { return std::erf(x); }), 2.0);
}

TEST(Math, SigmoidIsWithinThreeUlp) {
  EXPECT_LE(LargestError(1e-30f, 87.0f, Sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }),
            3.0);
}

TEST(Math, EndsOfTheRange) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-kInfinity), 0.0f);
  EXPECT_EQ(Exp(-104.0f), 0.0f);
  EXPECT_EQ(Exp(-1e30f), 0.0f);
  EXPECT_EQ(Exp(88.8f), kInfinity);
  EXPECT_EQ(Exp(kInfinity), kInfinity);
  EXPECT_NEAR(Exp(-100.0f), std::exp(-100.0), 0x1p-149);
  EXPECT_EQ(Tanh(kInfinity), 1.0f);
  EXPECT_EQ(Tanh(-50.0f), -1.0f);
  EXPECT_EQ(Erf(kInfinity), 1.0f);
  EXPECT_EQ(Erf(-5.0f), -1.0f);
  EXPECT_EQ(Sigmoid(-kInfinity), 0.0f);
  EXPECT_EQ(Sigmoid(kInfinity), 1.0f);
}

TEST(Math, NanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(Exp(nan)));
  EXPECT_TRUE(std::isnan(Tanh(nan)));
  EXPECT_TRUE(std::isnan(Erf(nan)));
  EXPECT_TRUE(std::isnan(Sigmoid(nan)));
}

}  // namespace
}  // namespace forerun::cpu
