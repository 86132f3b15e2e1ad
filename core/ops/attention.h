// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/ops/op_context.h"
#include "core/random/random.h"
#include "core/tensor/tensor.h"

namespace forerun {

// Causal softmax attention with grouped queries.
//   q: [s, b, heads, d]; k, v: [s, b, kv_heads, d]; heads is a multiple of kv_heads, and query
//   head h reads kv head h / (heads / kv_heads). All may be strided but in the last dim.
//   P[i, j] = softmax_j<=i(scale * q_i . k_j); out[i] = sum_j dropout(P)[i, j] v_j.
// Softmax is fp32. No [s, s] matrix is kept for the backward pass: it recomputes P from
// `logsumexp`.
struct AttentionOptions {
  float scale = 1.0f;
  // Dropout of probabilities: zeroed with probability p, others scaled by 1 / (1 - p). Element
  // (sample, head, i, j) draws UniformAt(key, ((sample * total_heads + head) * s + i) * s + j)
  // with sample = first_sample + its index in b and head = first_head + its index here, so that
  // the mask does not depend on the layout.
  float dropout = 0.0f;
  RandomKey key = RandomKey::Root(0);
  int64_t first_sample = 0;
  int64_t first_head = 0;
  int64_t total_heads = 0;
};

struct AttentionResult {
  Tensor out;        // [s, b, heads, d], dtype of q
  Tensor logsumexp;  // fp32 [b, heads, s], of the scaled scores
};
AttentionResult CausalAttention(const OpContext& context, const Tensor& q, const Tensor& k,
                                const Tensor& v, const AttentionOptions& options);

// Gradients into views that the caller provides (often slices of one fused QKV gradient, so
// strided); each is overwritten.
struct AttentionGradients {
  Tensor dq;  // [s, b, heads, d]
  Tensor dk;  // [s, b, kv_heads, d]
  Tensor dv;
};
void CausalAttentionBackward(const OpContext& context, const Tensor& q, const Tensor& k,
                             const Tensor& v, const AttentionResult& forward, const Tensor& dout,
                             const AttentionOptions& options, const AttentionGradients& gradients);

class AttentionKernels {
 public:
  virtual ~AttentionKernels() = default;
  virtual void Forward(const OpContext& context, const Tensor& q, const Tensor& k, const Tensor& v,
                       const AttentionOptions& options, const AttentionResult& out) const = 0;
  virtual void Backward(const OpContext& context, const Tensor& q, const Tensor& k,
                        const Tensor& v, const AttentionResult& forward, const Tensor& dout,
                        const AttentionOptions& options,
                        const AttentionGradients& gradients) const = 0;
};

}  // namespace forerun
