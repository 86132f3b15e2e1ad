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
  cpu.AdamW({}, step, Of(p), Of(m), Of(v), Of(grad));
  AdamW({}, step, absl::MakeSpan(p2), absl::MakeSpan(m2), absl::MakeSpan(v2), grad);
  EXPECT_EQ(p, p2);
  EXPECT_EQ(m, m2);
  EXPECT_EQ(v, v2);
  ExactSum sum;
  cpu.AddSquares(Of(grad), sum);
  EXPECT_EQ(sum.Value(), 77.0);
}

TEST(ShardArithmetic, OnMetaIsNothing) {
  const Tensor meta = Tensor::Wrap(nullptr, nullptr, {3}, DType::kF32, Device{DeviceKind::kMeta});
  const ShardArithmetic& arithmetic = ShardArithmeticOf(DeviceKind::kMeta);
  ExactSum sum;
  arithmetic.AddSquares(meta, sum);
  arithmetic.AdamW({}, {}, meta, meta, meta, meta);
  EXPECT_EQ(sum.Value(), 0.0);
}

}  // namespace
}  // namespace forerun
