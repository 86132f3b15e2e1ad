// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "parallel/comm/group_factory.h"
#include "parallel/comm/local/local_hub.h"

namespace forerun::comm {

struct RunRanksOptions {
  LocalHub::Options hub;
  int threads_per_rank = 1;  // for compute loops
};

// Runs `rank_main` once a rank, each on a thread of its own with a factory over one LocalHub, and
// joins them all. A rank that returns an error or throws GroupError aborts the world, as does a
// thread that the system will not start, and one that returns OK leaves it: the others' waits end
// with that error, or where they need the rank that has left. Returns the first error, or OK. This
// is where GroupError is caught.
absl::Status RunRanks(int world_size, const RunRanksOptions& options,
                      const std::function<absl::Status(GroupFactory&)>& rank_main);

}  // namespace forerun::comm
