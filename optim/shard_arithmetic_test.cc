// SPDX-License-Identifier: Apache-2.0
#include "optim/shard_arithmetic.h"

#include <vector>

#include "gtest/gtest.h"

namespace forerun {
namespace {

Tensor Of(std::vector<float>& values) {
  return Tensor::Wrap(nullptr, values.data(), {static_cast<int64_t>(values.size())}, DType::kF32);
}

TEST(ShardArithmetic, OnCpuIsTheFormulas) {
  std::vector<float> p = {1, 2, 3}, m = {0, 0, 0}, v = {0, 0, 0}, grad = {4, -5, 6};
  std::vector<float> p2 = p, m2 = m, v2 = v;
  const AdamWStep step{0.1f, 0.01f, 0.5f, 1};
  const ShardArithmetic& cpu = ShardArithmeticOf(DeviceKind::kCpu);
  cpu.AdamW({}, step, Of(p), Of(m), Of(v), Of(grad), Tensor());
  AdamW({}, step, absl::MakeSpan(p2), absl::MakeSpan(m2), absl::MakeSpan(v2), grad);
  EXPECT_EQ(p, p2);
  EXPECT_EQ(m, m2);
  EXPECT_EQ(v, v2);
  ExactSum sum;
  cpu.AddSquares(Of(grad), sum);
  EXPECT_EQ(sum.Value(), 77.0);
}

TEST(ShardArithmetic, PublishesTheParametersRounded) {
  // More than one piece of the loop.
  std::vector<float> p(40000), m(p.size()), v(p.size()), grad(p.size());
  for (size_t i = 0; i < p.size(); ++i)
    p[i] = grad[i] = 0.001f * static_cast<float>(i % 977) - 0.3f;
  std::vector<BFloat16> rounded(p.size());
  const Tensor published =
      Tensor::Wrap(nullptr, rounded.data(), {static_cast<int64_t>(p.size())}, DType::kBF16);
  ShardArithmeticOf(DeviceKind::kCpu)
      .AdamW({}, {0.1f, 0.01f, 0.5f, 1}, Of(p), Of(m), Of(v), Of(grad), published);
  for (size_t i = 0; i < p.size(); ++i) {
    ASSERT_EQ(static_cast<float>(rounded[i]), static_cast<float>(BFloat16(p[i]))) << i;
  }
}

TEST(ShardArithmetic, OnMetaIsNothing) {
  const Tensor meta = Tensor::Wrap(nullptr, nullptr, {3}, DType::kF32, Device{DeviceKind::kMeta});
  const ShardArithmetic& arithmetic = ShardArithmeticOf(DeviceKind::kMeta);
  ExactSum sum;
  arithmetic.AddSquares(meta, sum);
  arithmetic.AdamW({}, {}, meta, meta, meta, meta, meta);
  EXPECT_EQ(sum.Value(), 0.0);
}

}  // namespace
}  // namespace forerun
