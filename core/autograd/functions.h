// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/autograd/context.h"
#include "core/autograd/tape.h"
#include "core/ops/activation.h"

// Differentiable functions without weights. Each computes by the op of the same name in core/ops
// and records what its backward needs; formulas are there. Gradients are checked against central
// differences of the reference kernels.
namespace forerun {

Value Add(const ForwardContext& context, const Value& a, const Value& b);
Value Gelu(const ForwardContext& context, const Value& x, GeluKind kind);
Value Swiglu(const ForwardContext& context, const Value& x);

// Dropout of an activation [s, b, h] of this context's samples: keyed by the step, `site` (the
// layer's logical name) and the element's place in [total_rows, global_batch, total_width]; x
// holds the columns from first_column on, and where it is split along the sequence, the rows from
// first_row on. A total of 0 means that x holds them all. The identity when not training or p is 0.
struct DropoutSite {
  absl::string_view site;
  float p = 0.0f;
  int64_t first_column = 0;
  int64_t total_width = 0;
  int64_t first_row = 0;
  int64_t total_rows = 0;
};
Value Dropout(const ForwardContext& context, const Value& x, const DropoutSite& site);

// Attention of one fused projection qkv: [s, b, groups * (queries + 2) * d], where each group is
// `queries` query heads, then its key head, then its value head (Megatron-LM's order, so that a
// tensor-parallel split over groups is a contiguous one). Scores are scaled by 1 / sqrt(d). With
// `rope`, queries and keys are rotated first. Dropout acts when training, keyed by the step and
// `site`. Output: [s, b, groups * queries * d].
struct FusedAttentionSpec {
  int64_t groups = 0;   // kv heads held here
  int64_t queries = 0;  // query heads a group
  int64_t head_dim = 0;
  bool rope = false;
  double rope_base = 10000.0;
  float dropout = 0.0f;
  absl::string_view site;    // for dropout
  int64_t first_group = 0;   // place of these among the model's
  int64_t total_groups = 0;  // 0: these are all
};
Value FusedCausalAttention(const ForwardContext& context, const Value& qkv,
                           const FusedAttentionSpec& spec);

// Mean over all elements of x (fp32), times `factor`; one element.
Value ScaledMean(const ForwardContext& context, const Value& x, float factor);

}  // namespace forerun
