// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/comm/link/link.h"

namespace forerun {

// A training step as the gathers of parameters see it: an optimizer that updates bucket after
// bucket, then layers that run one after the other, each needing its own bucket; between two ranks
// a link. Layers are numbered in forward order.
struct SyncCase {
  std::vector<int64_t> numel;     // of a layer's fp32 parameter
  std::vector<int> registration;  // the layer that was registered first, second, ...
  comm::Clock::Time compute{0};   // of one layer
  comm::Clock::Time update{0};    // of one bucket
  comm::Link::Options link;

  int layers() const { return static_cast<int>(numel.size()); }
  double GatherSeconds(int layer) const;  // on the link, alone
  double BoundSeconds() const;            // step_bound.h, of a step without a backward pass
};

// Orders of registration, by name: "in-order", "late-norm" (the middle layer is registered last),
// "pairs-swapped", "reversed", "shuffled" (a fixed permutation).
std::vector<std::string> RegistrationNames();
std::vector<int> RegistrationByName(const std::string& name, int layers);

// Equal buckets, whose gathers take `link_ratio` times as long as a layer computes.
SyncCase EqualBuckets(int layers, const std::string& registration, comm::Clock::Time compute,
                      double link_ratio);

}  // namespace forerun
