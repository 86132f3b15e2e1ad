// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/activation.h"

#include <algorithm>

#include "core/ops/cpu/float_runs.h"
#include "core/ops/cpu/map_rows.h"
#include "core/ops/cpu/math.h"
#include "core/ops/cpu/vectors.h"

namespace forerun::cpu {
namespace {

constexpr float kSqrtHalf = 0.70710678f;
constexpr float kInvSqrtTwoPi = 0.39894228f;
float GeluExact(float x) { return 0.5f * x * (1.0f + Erf(x * kSqrtHalf)); }

float GeluExactSlope(float x) {
  return 0.5f * (1.0f + Erf(x * kSqrtHalf)) + x * (kInvSqrtTwoPi * Exp(-0.5f * x * x));
}

// The gradients of gate and up over a run of their rows.
template <typename T>
void SwigluBackwardRun(int64_t n, const T* gate, const T* up, const T* dy, T* dgate, T* dup) {
  alignas(64) float buffers[3][kMapBlock], gate_gradient[kMapBlock], up_gradient[kMapBlock];
  for (int64_t begin = 0; begin < n; begin += kMapBlock) {
    const int64_t count = std::min(kMapBlock, n - begin);
    const float* gates = AsFloats(gate + begin, count, buffers[0]);
    const float* ups = AsFloats(up + begin, count, buffers[1]);
    const float* dys = AsFloats(dy + begin, count, buffers[2]);
    for (int64_t i = 0; i < count; ++i) {
      const float g = gates[i], s = Sigmoid(g);
      gate_gradient[i] = dys[i] * ups[i] * (s * (1.0f + g * (1.0f - s)));
      up_gradient[i] = dys[i] * (g * s);
    }
    StoreFloats(gate_gradient, count, dgate + begin);
    StoreFloats(up_gradient, count, dup + begin);
  }
}

// The half of x's columns that begins at `first`.
template <typename T>
Rows<T> Half(const Rows<T>& x, int64_t first) {
  return {x.data + first, x.rows, x.columns / 2, x.stride};
}

class CpuActivation final : public ActivationKernels {
 public:
  void Gelu(const OpContext&, const Tensor& x, GeluKind kind, const Tensor& y) const override {
    VisitStored(x.dtype(), [&](auto type) {
      using T = decltype(type);
      if (kind == GeluKind::kTanh) {
        MapRuns(WriteRows<T>(y), GeluTanhRun, ReadRows<T>(x));
      } else {
        MapRows(
            WriteRows<T>(y), [](float v) { return GeluExact(v); }, ReadRows<T>(x));
      }
    });
  }

  void GeluBackward(const OpContext&, const Tensor& x, const Tensor& dy, GeluKind kind,
                    const Tensor& dx) const override {
    VisitStored(x.dtype(), [&](auto type) {
      using T = decltype(type);
      const Rows<T> out = WriteRows<T>(dx);
      const Rows<const T> in = ReadRows<T>(x), gradient = ReadRows<T>(dy);
      if (kind == GeluKind::kTanh) {
        MapRuns(out, GeluTanhBackwardRun, in, gradient);
      } else {
        MapRows(
            out, [](float v, float d) { return d * GeluExactSlope(v); }, in, gradient);
      }
    });
  }

  void Swiglu(const OpContext&, const Tensor& x, const Tensor& y) const override {
    VisitStored(x.dtype(), [&](auto type) {
      using T = decltype(type);
      const Rows<const T> in = ReadRows<T>(x);
      MapRows(
          WriteRows<T>(y), [](float gate, float up) { return gate * Sigmoid(gate) * up; },
          Half(in, 0), Half(in, in.columns / 2));
    });
  }

  void SwigluBackward(const OpContext&, const Tensor& x, const Tensor& dy,
                      const Tensor& dx) const override {
    VisitStored(x.dtype(), [&](auto type) {
      using T = decltype(type);
      const Rows<const T> in = ReadRows<T>(x), gradient = ReadRows<T>(dy);
      const Rows<T> out = WriteRows<T>(dx);
      const int64_t f = gradient.columns;
      ForPieces(in.rows, f, [&](int64_t row, int64_t column, int64_t count) {
        const T* gate = in.data + row * in.stride + column;
        T* dgate = out.data + row * out.stride + column;
        SwigluBackwardRun(count, gate, gate + f, gradient.data + row * gradient.stride + column,
                          dgate, dgate + f);
      });
    });
  }
};

}  // namespace

const ActivationKernels& Activation() {
  static const CpuActivation kernels;
  return kernels;
}

}  // namespace forerun::cpu
