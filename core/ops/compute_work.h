// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace forerun {

// What operators cost, counted and not timed: arithmetic where that bounds them, memory traffic
// where memory does.
struct ComputeWork {
  int64_t flops = 0;  // of matrix products and attention; an addition and a multiplication are two
  int64_t bytes = 0;  // that all other operators read and write

  bool operator==(const ComputeWork&) const = default;
};

}  // namespace forerun
