// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "parallel/comm/process_group.h"

namespace forerun::comm {

// What one rank brings to an operation. A message is an operation of two: arrival 0 is the Send and
// arrival 1 the Recv.
struct Arrival {
  OpKind kind = OpKind::kBarrier;
  ReduceOp reduce = ReduceOp::kSum;
  int root = 0;
  Tensor input;  // of all-reduce, broadcast and messages: the one tensor, as output too
  Tensor output;

  // Whether the two belong to one collective: equal in all that must be equal on all ranks.
  bool Matches(const Arrival& other) const;
  // That, in words.
  std::string Describe() const;
};

// The data movement of one operation whose ranks have all arrived, cut into one task a rank and
// phase. All tasks of a phase end before the next begins; tasks of a phase are independent. Phase p
// of rank r writes to r's output only.
int Phases(OpKind kind);
void RunTask(const std::vector<Arrival>& arrivals, int rank, int phase);
// Bytes of the largest tensor that a rank has brought.
int64_t LargestBytes(const std::vector<Arrival>& arrivals);

}  // namespace forerun::comm
