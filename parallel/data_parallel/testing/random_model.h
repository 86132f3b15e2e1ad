// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/autograd/parameter.h"
#include "parallel/data_parallel/cost_model.h"

namespace forerun {

// Parameters of random sizes and two dtypes, a share of them held by several stages, in first-use
// order; a function of the arguments.
class RandomModel {
 public:
  RandomModel(uint64_t seed, int parameters, int64_t most_numel, double shared = 0.1);

  const std::vector<const Parameter*>& order() const { return order_; }
  int size() const { return static_cast<int>(order_.size()); }

  // Up to `most_nanoseconds` of compute, a whole number, before each parameter's first use and
  // after the last one's.
  ForwardTimeline Timeline(int64_t most_nanoseconds) const;
  // Places for cuts, each with this probability.
  std::vector<int> Cuts(double density) const;

 private:
  const uint64_t seed_;
  std::vector<std::unique_ptr<Parameter>> owned_;
  std::vector<const Parameter*> order_;
};

}  // namespace forerun
