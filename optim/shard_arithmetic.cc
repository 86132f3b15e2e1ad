// SPDX-License-Identifier: Apache-2.0
#include "optim/shard_arithmetic.h"

#include <functional>

#include "absl/types/span.h"
#include "core/base/check.h"
#include "core/tensor/dtype.h"

namespace forerun {
namespace {

absl::Span<float> Floats(const Tensor& tensor) {
  return {tensor.mutable_data<float>(), static_cast<size_t>(tensor.numel())};
}

template <typename T>
void RoundTo(int64_t count, const float* __restrict from, T* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[i]);
}

class HostArithmetic final : public ShardArithmetic {
 public:
  void AddSquares(const Tensor& values, ExactSum& sum) const override {
    forerun::AddSquares(Floats(values), sum);
  }
  void AdamW(const AdamWOptions& options, const AdamWStep& step, const Tensor& p, const Tensor& m,
             const Tensor& v, const Tensor& grad, const Tensor& published) const override {
    std::function<void(int64_t, int64_t)> updated;
    if (published.defined()) {
      const float* from = p.data<float>();
      updated = [from, &published](int64_t begin, int64_t end) {
        VisitFloating(published.dtype(), [&](auto zero) {
          using T = decltype(zero);
          RoundTo(end - begin, from + begin, published.mutable_data<T>() + begin);
        });
      };
    }
    forerun::AdamW(options, step, Floats(p), Floats(m), Floats(v), Floats(grad), updated);
  }
};

class MetaArithmetic final : public ShardArithmetic {
 public:
  void AddSquares(const Tensor&, ExactSum&) const override {}
  void AdamW(const AdamWOptions&, const AdamWStep&, const Tensor&, const Tensor&, const Tensor&,
             const Tensor&, const Tensor&) const override {}
};

}  // namespace

const ShardArithmetic& ShardArithmeticOf(DeviceKind device) {
  static const HostArithmetic host{};
  static const MetaArithmetic meta{};
  FR_CHECK(device != DeviceKind::kCuda) << "the optimizer's arithmetic runs on cpu and meta";
  if (device == DeviceKind::kMeta) return meta;
  return host;
}

}  // namespace forerun
