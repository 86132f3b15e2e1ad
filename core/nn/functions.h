// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "core/autograd/context.h"
#include "core/autograd/parameter.h"
#include "core/autograd/tape.h"
#include "core/ops/activation.h"
#include "core/tensor/tensor.h"

// Differentiable functions with weights. Each reads its weights through the context's reader at
// the moment of use, in the order of its arguments, and contributes once to every trainable
// weight. `reader` names the layer that uses the weight. bias may be null.
//
// A lease stays on the tape only while backward needs the value: for the input gradient of a
// linear layer or a norm, and not where that is not wanted. All others end with the call. The
// parameters outlive the tape.
namespace forerun {

// y = x w^T + bias for x [..., k], w [n, k] (a weight of more dims is taken as rows of its last:
// [2, f, k] is [2 f, k]), bias of n elements.
Value Linear(const ForwardContext& context, const Value& x, const Parameter& weight,
             const Parameter* bias, absl::string_view reader);

// gelu(x w^T + bias), activation applied in the matmul's epilogue.
Value LinearGelu(const ForwardContext& context, const Value& x, const Parameter& weight,
                 const Parameter* bias, GeluKind gelu, absl::string_view reader);

// x + bias over the last dim: for a bias that is added after a sum over ranks.
Value AddBias(const ForwardContext& context, const Value& x, const Parameter& bias,
              absl::string_view reader);

Value LayerNorm(const ForwardContext& context, const Value& x, const Parameter& gamma,
                const Parameter& beta, float epsilon, absl::string_view reader);
Value RmsNorm(const ForwardContext& context, const Value& x, const Parameter& gamma, float epsilon,
              absl::string_view reader);

// tokens: int32 [s, b]; the table holds rows from first_row on of the vocabulary.
Value Embedding(const ForwardContext& context, const Tensor& tokens, const Parameter& table,
                int64_t first_row, absl::string_view reader);

// x [s, b, h] + table[0:s], a learned position for each row along s. Rows of the table that are
// not used have gradient zero.
Value AddPositions(const ForwardContext& context, const Value& x, const Parameter& table,
                   absl::string_view reader);

}  // namespace forerun
