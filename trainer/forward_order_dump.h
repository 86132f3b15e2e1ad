// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "trainer/arguments.h"

namespace forerun {

// Writes what --dump-forward-order asks for: the recorded graph of every pipeline stage's chunk, as
// tables or, into a file that ends in .dot, as one Graphviz digraph. Needs no other ranks.
absl::Status DumpForwardOrder(const Arguments& arguments);

}  // namespace forerun
