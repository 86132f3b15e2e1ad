// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "absl/types/span.h"
#include "core/autograd/context.h"
#include "core/autograd/parameter.h"
#include "core/autograd/tape.h"
#include "core/tensor/tensor.h"

namespace forerun {

// A differentiable function under test.
using TestFunction = std::function<Value(const ForwardContext&, absl::Span<const Value>)>;

// A weight that it reads, and where its value lies.
struct TestWeight {
  const Parameter* parameter;
  Tensor value;
  int contributions = 1;  // how often it is used
};

// Expects of `function`, whose inputs and weights are fp64 on cpu:
//  1. Gradients of all inputs and trainable weights agree with central differences of
//     sum(r * output), r fixed and drawn at random, to 1e-6 of the largest in that gradient.
//  2. A second backward pass adds the same to the weight gradients.
//  3. With the halves apart, or with constant inputs, the bits of each gradient are the same.
//  4. Without a tape, the bits of the output are the same.
// `context` brings ops, reader and randomness; its tape is not used.
void ExpectGradients(const ForwardContext& context, const TestFunction& function,
                     absl::Span<const Tensor> inputs, absl::Span<const TestWeight> weights = {});

// On meta: runs forward and backward, and expects gradients of the right shape and dtype. Gives the
// shape of the output.
Shape ExpectGradientShapes(const ForwardContext& context, const TestFunction& function,
                           absl::Span<const Tensor> inputs,
                           absl::Span<const TestWeight> weights = {});

}  // namespace forerun
