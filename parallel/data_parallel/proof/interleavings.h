// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/types/optional.h"
#include "parallel/data_parallel/proof/chain_spec.h"
#include "parallel/data_parallel/proof/fault.h"

namespace forerun::proof {

struct Exploration {
  int64_t states = 0;       // different ones
  int64_t transitions = 0;  // choices made
  absl::optional<Fault> fault;
};

// Makes every choice in every state that a world can reach, depth first: all interleavings of all
// ranks' instructions and of each rank's learning that an operation has ended. Complete, because a
// choice that is possible stays so until made, and a state is left alone only if one with the same
// 64-bit hash of everything that the future depends on (state machines included) was explored.
// Stops at the first fault.
Exploration ExploreAll(const ChainSpec& spec);

}  // namespace forerun::proof
