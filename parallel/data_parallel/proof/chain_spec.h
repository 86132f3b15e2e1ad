// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/data_parallel/grad_reduce.h"
#include "parallel/data_parallel/param_sync.h"

namespace forerun::proof {

// One thing that a rank's compute does.
struct Instruction {
  enum class Kind : uint8_t {
    kBeginStep,        // subject: microbatches
    kRead,             // subject: parameter
    kAnnounce,         // subject: chunk; value: index in ChainSpec::announcements
    kContribute,       // subject: parameter; value: what is added to its gradient
    kAwaitReductions,  // of the whole step
    kAccept,           // subject: bucket
    kPublish,          // subject: bucket
    kSetOrder,         // subject: index in ChainSpec::orders
  };
  Kind kind;
  int subject = 0;
  int64_t value = 0;
};

// A training run as the chain sees it: plans that all ranks share, and what each of them does.
struct ChainSpec {
  GatherPlan gather;
  ReducePlan reduce;
  bool poison = true;
  // By parameter: where its elements lie, and the buckets that the plan lets a read wait for.
  std::vector<std::vector<int>> buckets_of_parameter;
  std::vector<std::vector<int>> awaited_of_parameter;
  std::vector<std::vector<int>> announcements;     // contributions of one forward pass
  std::vector<std::vector<int>> orders;            // of gathers; reductions go in reverse
  std::vector<std::vector<Instruction>> programs;  // by rank

  // Derived by Complete. A slot is a parameter's part in one bucket; slots of a bucket follow one
  // another, in the order of ReducePlan::parameters_of_bucket.
  std::vector<int> first_slot_of_bucket;
  std::vector<std::vector<int>> slots_of_parameter;
  std::vector<std::vector<int64_t>> sums;  // by step and parameter: of all ranks' contributions

  // Fills in what follows from the rest.
  void Complete();

  int ranks() const { return static_cast<int>(programs.size()); }
  int buckets() const { return static_cast<int>(gather.order.size()); }
  int parameters() const { return static_cast<int>(buckets_of_parameter.size()); }
};

}  // namespace forerun::proof
