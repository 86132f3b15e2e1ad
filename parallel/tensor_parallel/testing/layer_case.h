// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "core/autograd/context.h"
#include "core/autograd/tape.h"
#include "core/nn/registry.h"
#include "core/tensor/shape.h"
#include "parallel/comm/process_group.h"

namespace forerun {

// A layer under test. Every rank builds its own.
struct LayerCase {
  using Forward = std::function<Value(const ForwardContext&, const Value& x)>;

  // Declares parameters and gives the forward pass, which keeps what it needs.
  std::function<Forward(ParameterRegistry&, comm::ProcessGroup&)> build;
  Shape input;                // of the whole x
  bool split_input = false;   // a rank takes its part of x along the last dim
  bool split_output = false;  // a rank returns its part of y along the last dim
};

// Runs the layer, forward and backward, on 2 and on 4 tensor-parallel ranks (threads, reference
// kernels, fp32) and expects of every rank what one rank gets: its part of the output, of the
// input's gradient and of every weight's gradient, each to 1e-5 of the largest element.
void ExpectEqualsOneRank(const LayerCase& layer);

// Runs two layers on 1, 2 and 4 ranks and expects of both the same, to 1e-5 of the largest element.
void ExpectSameResults(const LayerCase& layer, const LayerCase& other);

// Runs it on meta tensors as rank 1 of 4 of a group that moves nothing, and expects gradients of
// the right shapes.
void ExpectRunsOnMeta(const LayerCase& layer);

}  // namespace forerun
