// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/local/run_ranks.h"

#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel_for.h"
#include "parallel/comm/work.h"

namespace forerun::comm {
namespace {

absl::Status RunRank(GroupFactory& factory,
                     const std::function<absl::Status(GroupFactory&)>& rank_main) {
  try {
    return rank_main(factory);
  } catch (const GroupError& error) {
    return error.status();
  }
}

}  // namespace

absl::Status RunRanks(int world_size, const RunRanksOptions& options,
                      const std::function<absl::Status(GroupFactory&)>& rank_main) {
  LocalHub hub(world_size, options.hub);
  std::vector<std::unique_ptr<GroupFactory>> factories;
  std::vector<std::thread> threads;
  const auto run = [&](int rank) {
    SetLoopThreads(options.threads_per_rank);
    const absl::Status status = RunRank(*factories[rank], rank_main);
    if (!status.ok()) hub.Abort(status);
    factories[rank].reset();
  };
  try {
    // All ranks join before any runs.
    for (int rank = 0; rank < world_size; ++rank) factories.push_back(hub.Join(rank));
    for (int rank = 0; rank < world_size; ++rank) threads.emplace_back(run, rank);
  } catch (const std::system_error& error) {
    hub.Abort(absl::ResourceExhaustedError(
        absl::StrCat("the threads of ", world_size, " ranks cannot be started: ", error.what())));
  }
  for (std::thread& thread : threads) thread.join();
  return hub.status();
}

}  // namespace forerun::comm
