// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

#include "absl/container/inlined_vector.h"
#include "core/autograd/parameter.h"

namespace forerun {

// The weights that a function contributes to: of those given, in order, the trainable ones. Null
// stands for a weight that is not there.
inline absl::InlinedVector<const Parameter*, 2> Trainable(
    std::initializer_list<const Parameter*> parameters) {
  absl::InlinedVector<const Parameter*, 2> weights;
  for (const Parameter* parameter : parameters) {
    if (parameter != nullptr && parameter->trainable()) weights.push_back(parameter);
  }
  return weights;
}

}  // namespace forerun
