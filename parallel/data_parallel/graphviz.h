// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "parallel/data_parallel/forward_order.h"

namespace forerun {

// A forward-order graph as a cluster of a Graphviz digraph: a node a use, numbered in forward
// order, an arrow where one flows into another. `name` is unique among the clusters of a file.
std::string GraphvizCluster(const ForwardOrderGraph& graph, absl::string_view name);

}  // namespace forerun
