// SPDX-License-Identifier: Apache-2.0
#include "core/ops/attention.h"

#include "core/base/check.h"

namespace forerun {
namespace {

void CheckView(const Tensor& x, const Shape& shape, DType dtype, const char* name) {
  FR_CHECK_EQ(x.shape(), shape) << name << " of attention";
  FR_CHECK_EQ(x.dtype(), dtype) << name << " of attention";
  FR_CHECK(x.dim(3) <= 1 || x.strides()[3] == 1)
      << name << " of attention must be contiguous in its last dim";
}

void CheckInputs(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options) {
  FR_CHECK(IsFloating(q.dtype())) << "attention of " << q.dtype();
  FR_CHECK_EQ(q.rank(), 4) << "attention takes [s, b, heads, d], got " << q.shape();
  FR_CHECK_EQ(k.rank(), 4) << "attention takes [s, b, kv_heads, d], got " << k.shape();
  const int64_t heads = q.dim(2), kv_heads = k.dim(2);
  FR_CHECK(kv_heads > 0 && heads % kv_heads == 0)
      << heads << " query heads do not group over " << kv_heads << " kv heads";
  CheckView(q, q.shape(), q.dtype(), "q");
  const Shape kv{q.dim(0), q.dim(1), kv_heads, q.dim(3)};
  CheckView(k, kv, q.dtype(), "k");
  CheckView(v, kv, q.dtype(), "v");
  FR_CHECK(options.dropout >= 0.0f && options.dropout < 1.0f)
      << "dropout of attention is " << options.dropout;
  FR_CHECK(options.dropout == 0.0f || options.first_head + heads <= options.total_heads)
      << "heads [" << options.first_head << ", " << options.first_head + heads << ") of "
      << options.total_heads << " draw dropout";
}

Shape LogSumExpShape(const Tensor& q) { return Shape{q.dim(1), q.dim(2), q.dim(0)}; }

}  // namespace

AttentionResult CausalAttention(const OpContext& context, const Tensor& q, const Tensor& k,
                                const Tensor& v, const AttentionOptions& options) {
  CheckInputs(q, k, v, options);
  AttentionResult out{context.Empty(q.shape(), q.dtype()),
                      context.Empty(LogSumExpShape(q), DType::kF32)};
  context.kernels->attention->Forward(context, q, k, v, options, out);
  return out;
}

void CausalAttentionBackward(const OpContext& context, const Tensor& q, const Tensor& k,
                             const Tensor& v, const AttentionResult& forward, const Tensor& dout,
                             const AttentionOptions& options, const AttentionGradients& gradients) {
  CheckInputs(q, k, v, options);
  CheckView(forward.out, q.shape(), q.dtype(), "out");
  FR_CHECK_EQ(forward.logsumexp.shape(), LogSumExpShape(q)) << "logsumexp of attention";
  FR_CHECK_EQ(forward.logsumexp.dtype(), DType::kF32) << "logsumexp of attention";
  FR_CHECK(forward.logsumexp.is_contiguous()) << "logsumexp of attention";
  CheckView(dout, q.shape(), q.dtype(), "dout");
  CheckView(gradients.dq, q.shape(), q.dtype(), "dq");
  CheckView(gradients.dk, k.shape(), q.dtype(), "dk");
  CheckView(gradients.dv, k.shape(), q.dtype(), "dv");
  context.kernels->attention->Backward(context, q, k, v, forward, dout, options, gradients);
}

}  // namespace forerun
