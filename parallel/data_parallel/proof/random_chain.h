// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/types/optional.h"
#include "parallel/data_parallel/proof/chain_spec.h"
#include "parallel/data_parallel/proof/dice.h"
#include "parallel/data_parallel/proof/fault.h"

namespace forerun::proof {

// A random run of a random model, through the product's own forward order and bucket plan:
//  - up to 40 parameters in two dtypes, of random sizes, some optional, frozen or shared by stages,
//    registered in one random order and used in another, some several times;
//  - the graph recorded from a forward pass, buckets cut from it for up to 8 ranks, with cut
//    parameters among them; a window of 0, some or all bytes; one or two chunks;
//  - up to 4 steps, some of them skipped by the optimizer, of up to 4 microbatches. In each forward
//    pass each rank reads in an order of its own (the graph's, nearly, or any other), other counts,
//    and may leave out optional parameters; backward passes come at any time after their forward
//    pass, re-read parameters as recompute does, and contribute in any order;
//  - between steps the issue order may be planned anew.
ChainSpec RandomChain(Dice& dice);

// RandomChain of a seed, with random delays.
absl::optional<Fault> RunRandomCase(uint64_t seed);

}  // namespace forerun::proof
