// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/float_runs.h"

#include "core/ops/cpu/math.h"

// Highway compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/ops/cpu/float_runs.cc"
#include "hwy/foreach_target.h"  // keep before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace forerun::cpu::HWY_NAMESPACE {
namespace {

void ExpBelow(int64_t n, float* y, const float* x, float below) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) y[i] = Exp(x[i] - below);
}

void GeluTanh(int64_t n, float* y, const float* x) {
  constexpr float kTwoSqrtTwoOverPi = 1.5957691f, kCubic = 0.044715f;
  // 0.5 (1 + tanh u) is the sigmoid of 2 u: one exp, and exact in the negative tail.
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    y[i] = v * Sigmoid(kTwoSqrtTwoOverPi * (v + kCubic * v * v * v));
  }
}

// s + z s (1 - s) u', with s the sigmoid of u. Beyond 10 s (1 - s) is below 1e-37, and a smaller z
// keeps the exponential finite.
void GeluTanhBackward(int64_t n, float* dx, const float* x, const float* dy) {
  constexpr float kTwoSqrtTwoOverPi = 1.5957691f, kCubic = 0.044715f;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const float v = x[i];
    const float z = v < -10.0f ? -10.0f : v > 10.0f ? 10.0f : v;
    const float e = Exp(-kTwoSqrtTwoOverPi * (z + kCubic * z * z * z));
    const float s = 1.0f / (1.0f + e);
    const float inner_slope = kTwoSqrtTwoOverPi * (1.0f + 3.0f * kCubic * z * z);
    dx[i] = dy[i] * (s + z * (s * (e * s)) * inner_slope);
  }
}

}  // namespace
}  // namespace forerun::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace forerun::cpu {

HWY_EXPORT(ExpBelow);
HWY_EXPORT(GeluTanh);
HWY_EXPORT(GeluTanhBackward);

void ExpBelowRun(int64_t n, float* y, const float* x, float below) {
  HWY_DYNAMIC_DISPATCH(ExpBelow)(n, y, x, below);
}

void GeluTanhRun(int64_t n, float* y, const float* x) { HWY_DYNAMIC_DISPATCH(GeluTanh)(n, y, x); }

void GeluTanhBackwardRun(int64_t n, float* dx, const float* x, const float* dy) {
  HWY_DYNAMIC_DISPATCH(GeluTanhBackward)(n, dx, x, dy);
}

}  // namespace forerun::cpu
#endif  // HWY_ONCE
