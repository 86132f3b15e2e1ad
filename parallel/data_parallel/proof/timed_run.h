// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/types/optional.h"
#include "parallel/data_parallel/proof/chain_spec.h"
#include "parallel/data_parallel/proof/dice.h"
#include "parallel/data_parallel/proof/fault.h"

namespace forerun::proof {

// Random delays, in virtual time: uniform up to the figure, and now and then many times that.
struct Delays {
  int compute = 0;  // of an instruction
  int message = 0;  // from the moment when all have issued to a rank's learning of the end
};

// Runs a world in virtual time: whatever is possible happens after a random delay. The first
// fault, if there is one.
absl::optional<Fault> RunInVirtualTime(const ChainSpec& spec, const Delays& delays, Dice dice);

}  // namespace forerun::proof
