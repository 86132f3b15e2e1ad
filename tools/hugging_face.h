// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "checkpoint/checkpoint.h"

namespace forerun {

// Writes a checkpoint's weights as one safetensors file, under the names and in the layout of
// Hugging Face's transformers where the model is one that it knows; docs/checkpoint.md has the
// table:
//   GPT-2  learned positions, LayerNorm, GELU, biases, no grouped queries: GPT2LMHeadModel. Linear
//          weights are transposed to [in, out], as its Conv1D has them.
//   Llama  rotary positions, RMSNorm, SwiGLU, no biases: LlamaForCausalLM.
// Fused projections are split into queries, keys and values (GPT-2: one after the other in one
// tensor). Other models keep their own names and shapes. A tied head is left out, as there. Types
// stay. Returns the name of the family: "GPT-2", "Llama" or "own". Holds one tensor at a time.
absl::StatusOr<std::string> ExportWeights(Checkpoint& checkpoint, const std::string& path);

}  // namespace forerun
