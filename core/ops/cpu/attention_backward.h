// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/ops/attention.h"
#include "core/ops/cpu/attention_operands.h"
#include "core/tensor/tensor.h"

namespace forerun::cpu {

// The backward pass of attention, one (sample, kv head) at a time: P is recomputed block by block
// from the logsumexp of the forward pass, and with weighted_i = sum over d of dout_i * out_i
//   dv_j = sum_i dropout(P)_ij dout_i              dp_ij = dropout(dout_i . v_j)
//   ds_ij = P_ij (dp_ij - weighted_i)
//   dq_i = scale sum_j ds_ij k_j                   dk_j = scale sum_i ds_ij q_i
// (Dao, Fu, Ermon, Rudra, Re 2022). dk and dv are summed by one thread in the order of heads, then
// rows. Holds references: lives for one call.
struct AttentionBackward {
  const AttentionSizes& sizes;
  const Tensor &q, &k, &v;
  const AttentionResult& forward;
  const Tensor& dout;
  const AttentionOptions& options;
  const AttentionGradients& gradients;

  // Floats that Run wants at `memory`.
  int64_t ScratchFloats() const;
  // Writes dk and dv of this head, and dq of its query heads. Different pairs may run at once.
  void Run(int64_t sample, int64_t kv_head, float* memory) const;
};

}  // namespace forerun::cpu
