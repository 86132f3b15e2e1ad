// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/nn/registry.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace forerun {

// A linear layer y = x w^T + b of the whole model, before it is split over ranks.
struct LinearSpec {
  std::string name;  // parameters are <name>.weight and <name>.bias
  // [out, in]; or [parts, out, in], whose output is `parts` blocks of `out` features side by side,
  // each block split over the ranks by itself.
  Shape weight;
  bool bias = true;
  DType dtype = DType::kF32;
  Init init;  // of the weight; a bias starts at zero
};

}  // namespace forerun
