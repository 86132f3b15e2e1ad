// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "core/autograd/context.h"
#include "core/autograd/tape.h"

namespace forerun {

// A part of a forward pass, of one input. It is called again in the backward pass, so what it
// refers to outlives the tape, as do the context's ops and reader; and it does the same each time.
using Segment = std::function<Value(const ForwardContext& context, const Value& x)>;

// segment(context, x) that keeps only x for the backward pass, which runs the segment once more:
// activations of one segment at a time, for one more forward pass (Chen, Xu, Zhang, Guestrin 2016,
// "Training deep nets with sublinear memory cost"). Values, gradients and contributions are those
// of the segment itself, to the bit. Weights are read once more, through the same gate.
Value Recompute(const ForwardContext& context, const Value& x, Segment segment);

}  // namespace forerun
