// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/autograd/parameter.h"
#include "core/nn/registry.h"
#include "parallel/data_parallel/forward_order.h"
#include "parallel/data_parallel/proof/dice.h"

namespace forerun::proof {

// Parameters without values, and the graph of a forward pass that uses them. Registration order,
// names and first use have nothing to do with one another.
class RandomModel {
 public:
  explicit RandomModel(Dice& dice);

  const ForwardOrderGraph& graph() const { return graph_; }

 private:
  void Declare(int count, Dice& dice);
  ForwardOrderGraph Record(Dice& dice) const;

  ParameterRegistry registry_;
  const ForwardOrderGraph graph_;
};

}  // namespace forerun::proof
