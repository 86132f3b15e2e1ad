// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "parallel/comm/process_group.h"

namespace forerun::comm {

// What one rank brings to a collective.
struct Arrival {
  OpKind kind = OpKind::kBarrier;
  ReduceOp reduce = ReduceOp::kSum;
  int root = 0;
  Tensor input;   // of all-reduce and broadcast: the one tensor, as output too
  Tensor output;

  // Kind, dtype and size: what must be equal on all ranks.
  std::string Describe() const;
};

// The data movement of one collective whose ranks have all arrived, cut into one task a rank and
// phase. All tasks of a phase end before the next begins; tasks of a phase are independent.
int Phases(OpKind kind);
void RunTask(const std::vector<Arrival>& arrivals, int rank, int phase);

}  // namespace forerun::comm
