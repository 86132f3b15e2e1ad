// SPDX-License-Identifier: Apache-2.0
#include "core/ops/meta/kernels.h"

#include "core/device/allocator.h"
#include "core/device/device.h"
#include "core/ops/activation.h"
#include "core/ops/attention.h"
#include "core/ops/cast.h"
#include "core/ops/copy.h"
#include "core/ops/cross_entropy.h"
#include "core/ops/dropout.h"
#include "core/ops/elementwise.h"
#include "core/ops/embedding.h"
#include "core/ops/matmul.h"
#include "core/ops/norm.h"
#include "core/ops/reduce.h"
#include "core/ops/rope.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

class MetaTest : public testing::Test {
 protected:
  Tensor Make(const Shape& shape, DType dtype = DType::kBF16) const {
    return context_.Empty(shape, dtype);
  }

  MetaAllocator allocator_;
  InlineStream stream_{Device{DeviceKind::kMeta}};
  const OpContext context_{&stream_, &allocator_, &meta::Kernels()};
};

void ExpectForm(const Tensor& t, const Shape& shape, DType dtype) {
  EXPECT_EQ(t.shape(), shape);
  EXPECT_EQ(t.dtype(), dtype);
  EXPECT_TRUE(t.is_meta());
  EXPECT_TRUE(t.is_contiguous());
}

TEST_F(MetaTest, RowwiseOpsKeepShapeAndDtype) {
  const Tensor x = Make({5, 2, 8});
  const Tensor row = Make({8});
  ExpectForm(Gelu(context_, x, GeluKind::kTanh), {5, 2, 8}, DType::kBF16);
  ExpectForm(GeluBackward(context_, x, x, GeluKind::kExact), {5, 2, 8}, DType::kBF16);
  ExpectForm(Add(context_, x, x), {5, 2, 8}, DType::kBF16);
  ExpectForm(AddRow(context_, x, row), {5, 2, 8}, DType::kBF16);
  ExpectForm(Scale(context_, x, 2.0f), {5, 2, 8}, DType::kBF16);
  ExpectForm(Cast(context_, x, DType::kF32), {5, 2, 8}, DType::kF32);
  ExpectForm(Contiguous(context_, x.Slice(2, 0, 4)), {5, 2, 4}, DType::kBF16);
  ExpectForm(Dropout(context_, x, {.p = 0.5f, .global = {5, 2, 8}, .offset = {0, 0, 0}}), {5, 2, 8},
             DType::kBF16);
}

TEST_F(MetaTest, SwigluHalvesTheLastDim) {
  const Tensor x = Make({5, 2, 8});
  const Tensor y = Swiglu(context_, x);
  ExpectForm(y, {5, 2, 4}, DType::kBF16);
  ExpectForm(SwigluBackward(context_, x, y), {5, 2, 8}, DType::kBF16);
}

TEST_F(MetaTest, NormStatisticsAreOneFp32ValueARow) {
  const Tensor x = Make({5, 2, 8});
  const Tensor gamma = Make({8});
  const LayerNormResult layer = LayerNorm(context_, x, gamma, gamma, 1e-5f);
  ExpectForm(layer.y, {5, 2, 8}, DType::kBF16);
  ExpectForm(layer.mean, {10}, DType::kF32);
  ExpectForm(layer.rstd, {10}, DType::kF32);
  ExpectForm(LayerNormBackwardInput(context_, x, gamma, layer.mean, layer.rstd, layer.y), {5, 2, 8},
             DType::kBF16);
  const RmsNormResult rms = RmsNorm(context_, x, gamma, 1e-5f);
  ExpectForm(rms.y, {5, 2, 8}, DType::kBF16);
  ExpectForm(rms.rrms, {10}, DType::kF32);
  ExpectForm(RmsNormBackwardInput(context_, x, gamma, rms.rrms, rms.y), {5, 2, 8}, DType::kBF16);
  RmsNormBackwardWeight(context_, x, rms.rrms, rms.y, true, Make({8}, DType::kF32));
}

// One layer and the loss, forward and backward, at sizes no host could hold.
TEST_F(MetaTest, AModelOfAnySizeRunsForwardAndBackward) {
  const int64_t s = 1 << 14, b = 1 << 8, h = 1 << 14, heads = 1 << 7, d = h / heads, v = 1 << 18;
  const Tensor tokens = Make({s, b}, DType::kI32);
  const Tensor table = Make({v, h});
  const Tensor x = Embedding(context_, tokens, table, 0);
  ExpectForm(x, {s, b, h}, DType::kBF16);

  const Tensor q = Rope(context_, x.SplitDim(2, heads, d), {});
  ExpectForm(q, {s, b, heads, d}, DType::kBF16);
  const AttentionResult attention = CausalAttention(context_, q, q, q, {});
  ExpectForm(attention.out, {s, b, heads, d}, DType::kBF16);
  ExpectForm(attention.logsumexp, {b, heads, s}, DType::kF32);

  const Tensor rows = attention.out.View({s * b, h});
  const Tensor logits = Matmul(context_, rows, table, {.transpose_b = true});
  ExpectForm(logits, {s * b, v}, DType::kBF16);
  const Tensor targets = tokens.View({s * b});
  const VocabularyRange range{.first_column = 0, .valid_columns = v};
  const Tensor row_max = RowMax(context_, logits, range);
  const Tensor sums = SumExpAndTarget(context_, logits, targets, row_max, range);
  ExpectForm(sums, {2, s * b}, DType::kF32);
  const Tensor loss = CrossEntropyLoss(context_, sums);
  ExpectForm(loss, {s * b}, DType::kF32);
  ExpectForm(Mean(context_, loss), {1}, DType::kF32);

  const Tensor dlogits =
      CrossEntropyBackward(context_, logits, targets, row_max, sums, loss, range);
  ExpectForm(dlogits, {s * b, v}, DType::kBF16);
  const Tensor drows = Matmul(context_, dlogits, table);
  ExpectForm(drows, {s * b, h}, DType::kBF16);
  MatmulInto(context_, dlogits, rows, {.transpose_a = true, .accumulate = true},
             Make({v, h}, DType::kF32));
  SumRows(context_, drows, false, Make({h}, DType::kF32));
  const Tensor dq = Make({s, b, heads, d});
  CausalAttentionBackward(context_, q, q, q, attention, drows.View({s, b, heads, d}), {},
                          {dq, Make({s, b, heads, d}), Make({s, b, heads, d})});
  EmbeddingBackward(context_, tokens, dq.View({s, b, h}), 0, true, Make({v, h}, DType::kF32));
  EXPECT_GT(allocator_.peak_bytes(), int64_t{1} << 40);
}

TEST_F(MetaTest, ReadingAValueDiesNamingTheReader) {
  const Tensor mean = Mean(context_, Make({4}, DType::kF32));
  EXPECT_DEATH(mean.data<float>(), "TestBody .*kernels_test.cc.* meta tensor of shape .1.");
}

TEST_F(MetaTest, MisfitsDieOnMetaAsOnEveryDevice) {
  EXPECT_DEATH(Add(context_, Make({2, 3}), Make({3, 2})), "terms of Add");
  EXPECT_DEATH(Swiglu(context_, Make({2, 3})), "halves the last dim");
  EXPECT_DEATH(LayerNorm(context_, Make({2, 3}), Make({3}), Make({2}), 1e-5f), "beta of a norm");
}

TEST_F(MetaTest, CountingKernelsAddUpFlopsOfProductsAndBytesOfTheRest) {
  const meta::CountingKernels counting;
  const OpContext context{&stream_, &allocator_, &counting.table()};
  const auto expect = [&](int64_t flops, int64_t bytes) {
    EXPECT_EQ(counting.work(), (ComputeWork{flops, bytes}));
  };
  expect(0, 0);
  Matmul(context, Make({3, 5}), Make({7, 5}), {.transpose_b = true});
  expect(2 * 3 * 5 * 7, 0);
  Matmul(context, Make({5, 3}), Make({5, 7}), {.transpose_a = true});
  expect(2 * (2 * 3 * 5 * 7), 0);
  const Tensor q = Make({6, 2, 4, 8}), kv = Make({6, 2, 2, 8});
  CausalAttention(context, q, kv, kv, {});
  const int64_t flops = 2 * (2 * 3 * 5 * 7) + 2 * (2 * 4 * 6 * 6 * 8);
  expect(flops, 0);
  Add(context, Make({10}), Make({10}));
  expect(flops, 3 * 20);
  LayerNorm(context, Make({2, 10}), Make({10}), Make({10}), 1e-5f);
  expect(flops, 3 * 20 + 2 * 40);
}

}  // namespace
}  // namespace forerun
