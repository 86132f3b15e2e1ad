// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/tensor/tensor.h"
#include "data/dataset.h"

namespace forerun {

// What one forward pass takes: int32 [s, b] each, sequence first, on the cpu. targets is the token
// after each of tokens. The tensors own their memory.
struct TokenBatch {
  Tensor tokens;
  Tensor targets;
};

// Column i is sample samples[i] of `dataset`; at least one sample.
absl::StatusOr<TokenBatch> MakeTokenBatch(const Dataset& dataset,
                                          absl::Span<const int64_t> samples);

}  // namespace forerun
