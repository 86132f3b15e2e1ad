// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/registration_order.h"

namespace forerun {

// One microbatch of a model split over ranks.
struct WholeModelCase {
  GptConfig config;
  int64_t s = 0;
  int64_t b = 0;
  std::vector<int32_t> tokens;   // [s, b]
  std::vector<int32_t> targets;  // [s, b]
  uint64_t seed = 1;             // of weights and dropout
  RegistrationOrder order;
};

// Put together from all ranks: does not depend on the layout.
struct WholeModelRun {
  double loss = 0.0;
  std::map<std::string, std::vector<double>> gradients;  // whole, row-major, by parameter
};

// Forward and backward on `tensor_parallel` threads, each of which runs all `stages` one after the
// other and hands activations and their gradients on. Reference kernels, dropout on. The gradients
// of a shared parameter's copies are added.
WholeModelRun RunWholeModel(const WholeModelCase& model, int tensor_parallel = 1, int stages = 1);

}  // namespace forerun
