// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/dtype.h"
#include "parallel/comm/process_group.h"

namespace forerun::comm {

// What a rank issues to a group, as far as the group's ranks must agree on it.
struct Operation {
  OpKind kind = OpKind::kBarrier;
  ReduceOp reduce = ReduceOp::kSum;
  int peer = -1;      // in the group: of a message, or the root of a broadcast
  int64_t numel = 0;  // of the whole: what is reduced, gathered, scattered or sent
  DType dtype = DType::kU8;

  bool operator==(const Operation&) const = default;
  std::string ToString() const;  // "AllReduce of 64 fp32 (sum)"
};

// A group by its name and the world ranks in it, in order.
struct GroupIdentity {
  std::string name;
  std::vector<int> members;

  bool operator==(const GroupIdentity&) const = default;
};

// One rank's communication as data: every operation that it issues, in order, and every wait.
struct Program {
  // A wait for, or else the issue of, operations[group][operation].
  struct Event {
    int group = 0;
    int operation = 0;
    bool wait = false;

    bool operator==(const Event&) const = default;
  };

  std::vector<GroupIdentity> groups;               // in the order in which the rank made them
  std::vector<std::vector<Operation>> operations;  // by group, in the order of issue
  std::vector<Event> events;                       // in the order of time

  int64_t operation_count() const;
};

// Compares what two programs issue, group by group: how groups interleave in time, and when a rank
// waits, may differ from run to run. "" where it is the same, else the first difference in a
// sentence; `a_name` and `b_name` say whose programs they are.
std::string FirstDifference(const Program& a, absl::string_view a_name, const Program& b,
                            absl::string_view b_name);

}  // namespace forerun::comm
