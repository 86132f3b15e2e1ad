// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/autograd/context.h"
#include "core/autograd/tape.h"
#include "core/nn/registry.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace forerun {

// What one forward pass is about: token ids, int32 [s, b].
struct Microbatch {
  Tensor tokens;
  Tensor targets;  // the token that follows each
};

// The piece of a model that one pipeline stage runs: what stands between any model, a user's own
// included, and whoever trains, checks or samples it.
//
// A chunk keeps parameters' identities, never values, and nothing of a forward pass: passes of
// several microbatches may be under way at once. It belongs to its rank's compute thread.
//
// A model whose path depends on tensor values declares the parameters of such branches optional;
// the first forward pass of all runs on meta tensors, which have no values.
class ModelChunk {
 public:
  virtual ~ModelChunk() = default;

  // All parameters of this chunk; constant once the chunk is built.
  virtual const ParameterRegistry& registry() const = 0;

  // Whether the model starts and ends here. A whole model is both.
  virtual bool first() const = 0;
  virtual bool last() const = 0;

  // The pass of one microbatch. `input` is the activation that the chunk before returned; the first
  // chunk ignores it (an undefined constant). Returns the activation for the next chunk or, from
  // the last one, the mean loss over the microbatch's tokens: fp32, one element.
  virtual Value Forward(const ForwardContext& context, const Value& input,
                        const Microbatch& microbatch) const = 0;

  // The last chunk's scores of what follows each token, [s, b, vocabulary]: this tensor-parallel
  // rank's columns, padding included.
  virtual Value Logits(const ForwardContext& context, const Value& input,
                       const Tensor& tokens) const = 0;

  // What travels between chunks for s tokens of b samples.
  virtual Shape ActivationShape(int64_t s, int64_t b) const = 0;
  virtual DType activation_dtype() const = 0;
};

}  // namespace forerun
