// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/proof/chain_spec.h"

namespace forerun::proof {

void ChainSpec::Complete() {
  slots_of_parameter.assign(parameters(), {});
  first_slot_of_bucket = {0};
  int slots = 0;
  for (const std::vector<int>& members : reduce.parameters_of_bucket) {
    for (int parameter : members) slots_of_parameter[parameter].push_back(slots++);
    first_slot_of_bucket.push_back(slots);
  }
  sums.clear();
  for (const std::vector<Instruction>& program : programs) {
    size_t steps = 0;
    for (const Instruction& instruction : program) {
      if (instruction.kind == Instruction::Kind::kBeginStep) {
        if (++steps > sums.size()) sums.emplace_back(parameters(), 0);
      } else if (instruction.kind == Instruction::Kind::kContribute) {
        sums[steps - 1][instruction.subject] += instruction.value;
      }
    }
  }
}

}  // namespace forerun::proof
