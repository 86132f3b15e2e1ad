// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference/activation.h"

#include <cmath>

#include "core/ops/reference/elements.h"

namespace forerun::reference {
namespace {

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kSqrtTwoOverPi = 0.79788456080286535588;
constexpr double kInvSqrtTwoPi = 0.39894228040143267794;
constexpr double kCubic = 0.044715;

double GeluOf(double x, GeluKind kind) {
  if (kind == GeluKind::kExact) return 0.5 * x * std::erfc(-x * kSqrtHalf);
  return 0.5 * x * (1.0 + std::tanh(kSqrtTwoOverPi * (x + kCubic * x * x * x)));
}

double GeluSlope(double x, GeluKind kind) {
  if (kind == GeluKind::kExact) {
    return 0.5 * std::erfc(-x * kSqrtHalf) + x * kInvSqrtTwoPi * std::exp(-0.5 * x * x);
  }
  const double t = std::tanh(kSqrtTwoOverPi * (x + kCubic * x * x * x));
  const double inner_slope = kSqrtTwoOverPi * (1.0 + 3.0 * kCubic * x * x);
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner_slope;
}

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

class ReferenceActivation final : public ActivationKernels {
 public:
  void Gelu(const OpContext&, const Tensor& x, GeluKind kind, const Tensor& y) const override {
    const Elements in(x), out(y);
    for (int64_t i = 0; i < x.numel(); ++i) out.Set(i, GeluOf(in[i], kind));
  }

  void GeluBackward(const OpContext&, const Tensor& x, const Tensor& dy, GeluKind kind,
                    const Tensor& dx) const override {
    const Elements in(x), gradient(dy), out(dx);
    for (int64_t i = 0; i < x.numel(); ++i) out.Set(i, gradient[i] * GeluSlope(in[i], kind));
  }

  void Swiglu(const OpContext&, const Tensor& x, const Tensor& y) const override {
    const Elements in(x), out(y);
    const int64_t f = y.dim(-1);
    for (int64_t i = 0; i < y.numel(); ++i) {
      const int64_t gate = i / f * 2 * f + i % f;
      out.Set(i, in[gate] * Sigmoid(in[gate]) * in[gate + f]);
    }
  }

  void SwigluBackward(const OpContext&, const Tensor& x, const Tensor& dy,
                      const Tensor& dx) const override {
    const Elements in(x), gradient(dy), out(dx);
    const int64_t f = dy.dim(-1);
    for (int64_t i = 0; i < dy.numel(); ++i) {
      const int64_t gate = i / f * 2 * f + i % f;
      const double g = in[gate], up = in[gate + f], s = Sigmoid(g);
      out.Set(gate, gradient[i] * up * (s + g * s * (1.0 - s)));
      out.Set(gate + f, gradient[i] * g * s);
    }
  }
};

}  // namespace

const ActivationKernels& Activation() {
  static const ReferenceActivation kernels;
  return kernels;
}

}  // namespace forerun::reference
