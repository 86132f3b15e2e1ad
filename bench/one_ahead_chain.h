// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace forerun {

// How others chain their gathers: one bucket ahead, along a fixed order. Passive, as ParamSync:
// events go in, and each returns the gathers to start now. For comparison only.
//
// Along the order of registration this is the chain of Megatron-LM (megatron-core 0.19.2):
//  1. Nothing starts when the optimizer has updated; a step begins with no gather in flight.
//  2. A layer that is about to run and whose bucket was not started starts it, itself.
//  3. It waits for its bucket, then starts the bucket's successor in the order, unless that one was
//     started before. So each layer that runs starts at most one gather for later, and it is the
//     right one only where the order is that of use.
// With equal buckets whose gathers take as long as a layer computes, a layer waits unless the layer
// registered just before it has run before it: of 8 layers
//   registered in order 1, one late norm 2, pairs swapped 5, reversed 8.
// Along the order of use it is a chain that knows the order and looks one bucket ahead.
class OneAheadChain {
 public:
  // A permutation of the buckets.
  explicit OneAheadChain(const std::vector<int>& order);

  // The optimizer has updated all buckets.
  void OnStep();
  // A layer is about to run.
  std::vector<int> OnWanted(int bucket);
  // It has waited: its bucket is there.
  std::vector<int> OnWaited(int bucket);

 private:
  std::vector<int> Start(int bucket);

  std::vector<int> successor_;  // by bucket; -1: the last
  std::vector<bool> started_;   // by bucket, in this step
};

}  // namespace forerun
