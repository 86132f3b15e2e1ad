// SPDX-License-Identifier: Apache-2.0
#include "optim/shard_arithmetic.h"

#include "absl/types/span.h"
#include "core/base/check.h"

namespace forerun {
namespace {

absl::Span<float> Floats(const Tensor& tensor) {
  return {tensor.mutable_data<float>(), static_cast<size_t>(tensor.numel())};
}

class HostArithmetic final : public ShardArithmetic {
 public:
  void AddSquares(const Tensor& values, ExactSum& sum) const override {
    forerun::AddSquares(Floats(values), sum);
  }
  void AdamW(const AdamWOptions& options, const AdamWStep& step, const Tensor& p, const Tensor& m,
             const Tensor& v, const Tensor& grad) const override {
    forerun::AdamW(options, step, Floats(p), Floats(m), Floats(v), Floats(grad));
  }
};

class MetaArithmetic final : public ShardArithmetic {
 public:
  void AddSquares(const Tensor&, ExactSum&) const override {}
  void AdamW(const AdamWOptions&, const AdamWStep&, const Tensor&, const Tensor&, const Tensor&,
             const Tensor&) const override {}
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
