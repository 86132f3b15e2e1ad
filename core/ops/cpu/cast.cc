// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/cast.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/base/parallel_for.h"
#include "core/ops/cpu/vectors.h"

namespace forerun::cpu {
namespace {

constexpr int64_t kElementsAThread = 1 << 15;
constexpr int64_t kBlock = 1024;

// To float, rounded to odd: an inexact value gets an odd last bit, from which a second rounding
// to fewer bits (nearest even) comes out as one rounding from double would.
float RoundToOdd(double value) {
  float rounded = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(rounded) == value) return rounded;
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  if (std::abs(static_cast<double>(rounded)) > std::abs(value)) --bits;
  bits |= 1u;
  std::memcpy(&rounded, &bits, sizeof rounded);
  return rounded;
}

template <typename From, typename To>
To Convert(From value) {
  if constexpr (std::is_same_v<From, double> && !std::is_same_v<To, double>) {
    return std::is_same_v<To, float> ? To(static_cast<float>(value)) : To(RoundToOdd(value));
  } else {
    return To(static_cast<float>(value));
  }
}

template <typename From, typename To>
void CastRun(const From* from, int64_t count, To* to) {
  if constexpr (std::is_same_v<From, To>) {
    std::copy(from, from + count, to);
  } else if constexpr (std::is_same_v<From, double> || std::is_same_v<To, double>) {
    for (int64_t i = 0; i < count; ++i) to[i] = Convert<From, To>(from[i]);
  } else {
    alignas(64) float buffer[kBlock];
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      const int64_t n = std::min(kBlock, count - begin);
      StoreFloats(AsFloats(from + begin, n, buffer), n, to + begin);
    }
  }
}

class CpuCast final : public CastKernels {
 public:
  void Cast(const OpContext&, const Tensor& x, const Tensor& out) const override {
    VisitFloating(x.dtype(), [&](auto from) {
      VisitFloating(out.dtype(), [&](auto to) {
        const auto* source = x.data<decltype(from)>();
        auto* target = out.mutable_data<decltype(to)>();
        ParallelFor(x.numel(), kElementsAThread, [&](int64_t begin, int64_t end) {
          CastRun(source + begin, end - begin, target + begin);
        });
      });
    });
  }
};

}  // namespace

const CastKernels& Cast() {
  static const CpuCast kernels;
  return kernels;
}

}  // namespace forerun::cpu
