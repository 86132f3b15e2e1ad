// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/autograd/grad_sink.h"
#include "core/autograd/parameter.h"
#include "core/ops/op_context.h"

namespace forerun {

// One contribution, start to end: write(slot) overwrites slot.grad or adds to it, as the slot says.
template <typename Write>
void Contribute(const OpContext& context, GradSink& sink, const Parameter& parameter,
                Write&& write) {
  const GradSlot slot = sink.Slot(parameter);
  write(slot);
  sink.Contributed(parameter, context.stream->Record());
}

// The contribution of a use that nothing depended on.
void ContributeZero(const OpContext& context, GradSink& sink, const Parameter& parameter);

}  // namespace forerun
