// SPDX-License-Identifier: Apache-2.0
#include "core/autograd/contribute.h"

#include "core/ops/copy.h"

namespace forerun {

void ContributeZero(const OpContext& context, GradSink& sink, const Parameter& parameter) {
  Contribute(context, sink, parameter, [&](const GradSlot& slot) {
    if (!slot.accumulate) Fill(context, 0.0f, slot.grad);
  });
}

}  // namespace forerun
