// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "parallel/comm/process_group.h"

namespace forerun {

// Runs `body` once for each of `ranks` ranks of one group, each on a thread of its own.
void ForEachRank(int ranks, absl::FunctionRef<void(comm::ProcessGroup&)> body);

// A group in which nothing moves, as it should be for a group of one; a larger one is for meta
// tensors.
std::shared_ptr<comm::ProcessGroup> FakeGroup(int rank, int size);
inline std::shared_ptr<comm::ProcessGroup> SelfGroup() { return FakeGroup(0, 1); }

}  // namespace forerun
