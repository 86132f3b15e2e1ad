// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "core/autograd/param_reader.h"
#include "core/autograd/parameter.h"
#include "core/autograd/tape.h"
#include "core/ops/op_context.h"
#include "core/random/random.h"
#include "core/tensor/tensor.h"

namespace forerun {

// What a forward pass is given: passed down through every layer, never stored by one.
//
// A function of this codebase that is differentiable has the shape
//   Value Function(const ForwardContext& context, const Value& x, ...)
// runs its op, and records a Node where there is a tape. Without one (evaluation) it only
// computes. Weights are read by the function that uses them, at the moment it does.
struct ForwardContext {
  const OpContext& op;
  ParamReader& reader;
  Tape* tape = nullptr;  // null: nothing will be differentiated

  // Randomness of this step, and which samples of the global batch this microbatch holds, so
  // that dropout depends on neither layout nor schedule.
  RandomKey random = RandomKey::Root(0);
  int64_t first_sample = 0;
  int64_t global_batch = 0;  // samples in the step
  bool training = false;     // dropout acts
  bool recompute = true;     // false: Recompute runs its segment as it is

  // What every function ends with: records where there is a tape (Tape::Record1), and gives a
  // constant where there is none.
  Value Record(std::unique_ptr<Node> node, absl::Span<const Value> inputs, Tensor output,
               absl::Span<const Parameter* const> weights = {}) const {
    if (tape == nullptr) return Value{std::move(output)};
    return tape->Record1(std::move(node), inputs, std::move(output), weights);
  }
};

}  // namespace forerun
