// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

// Elementary functions in float for loops that become vector code: branches are selections, and a
// result depends on the argument alone. math_test.cc holds the bounds on errors. NaN gives NaN.
// Polynomials: own minimax fits of the function on the interval named.
namespace forerun::cpu {

// Underflows to zero through subnormals and overflows to infinity. At most 1.5 ulp.
inline float Exp(float x) {
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;  // few bits: the product with an integer is exact
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves an integer in the low bits
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const float rounded = x * kLog2E + kRound;
  const float n = rounded - kRound;
  const float r = std::fma(n, -kLn2Low, std::fma(n, -kLn2High, x));
  // (exp(r) - 1 - r) / r^2 on |r| <= ln(2) / 2
  float p = 1.9790223e-4f;
  p = std::fma(p, r, 1.39447849e-3f);
  p = std::fma(p, r, 8.3334977e-3f);
  p = std::fma(p, r, 4.16662917e-2f);
  p = std::fma(p, r, 1.66666657e-1f);
  p = std::fma(p, r, 5.0e-1f);
  p = std::fma(p, r * r, r) + 1.0f;
  // 2^n in two factors, as 2^n alone may be out of range where the product is not.
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  const int32_t exponent = static_cast<int32_t>(bits - 0x4b400000u);
  const int32_t half = exponent >> 1;
  const uint32_t low_bits = static_cast<uint32_t>(half + 127) << 23;
  const uint32_t high_bits = static_cast<uint32_t>(exponent - half + 127) << 23;
  float low, high;
  std::memcpy(&low, &low_bits, sizeof low);
  std::memcpy(&high, &high_bits, sizeof high);
  return p * low * high;
}

// 1 / (1 + exp(-x))
inline float Sigmoid(float x) { return 1.0f / (1.0f + Exp(-x)); }

inline float Tanh(float x) {
  const float magnitude = std::fabs(x);
  const float large = 1.0f - 2.0f / (Exp(2.0f * magnitude) + 1.0f);
  const float z = x * x;
  // (tanh(x) / x - 1) / x^2 in z = x^2, on |x| <= 0.625
  float p = 2.14753696e-3f;
  p = std::fma(p, z, -8.18267372e-3f);
  p = std::fma(p, z, 2.17029676e-2f);
  p = std::fma(p, z, -5.39472029e-2f);
  p = std::fma(p, z, 1.33332103e-1f);
  p = std::fma(p, z, -3.33333313e-1f);
  const float small = std::fma(p * z, x, x);
  return magnitude < 0.625f ? small : std::copysign(large, x);
}

inline float Erf(float x) {
  const float magnitude = std::fabs(x);
  // -log(1 - erf(t)) on 0.98 <= t <= 4; from 4 on erf is one in float.
  const float t = magnitude > 4.0f ? 4.0f : magnitude;
  float q = 2.16987082e-5f;
  q = std::fma(q, t, -4.41486249e-4f);
  q = std::fma(q, t, 4.20535542e-3f);
  q = std::fma(q, t, -2.52105407e-2f);
  q = std::fma(q, t, 1.08422436e-1f);
  q = std::fma(q, t, 6.33216083e-1f);
  q = std::fma(q, t, 1.1295805f);
  q = std::fma(q, t, -1.88507489e-4f);
  const float large = 1.0f - Exp(-q);
  // erf(x) / x - 1 in z = x^2, on |x| <= 1
  const float z = x * x;
  float p = 7.8891193e-5f;
  p = std::fma(p, z, -8.02084105e-4f);
  p = std::fma(p, z, 5.18953521e-3f);
  p = std::fma(p, z, -2.68544443e-2f);
  p = std::fma(p, z, 1.12836003e-1f);
  p = std::fma(p, z, -3.7612626e-1f);
  p = std::fma(p, z, 1.28379166e-1f);
  const float small = std::fma(p, x, x);
  return magnitude < 0.98f ? small : std::copysign(large, x);
}

}  // namespace forerun::cpu
