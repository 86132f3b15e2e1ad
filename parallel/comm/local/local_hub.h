// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "parallel/comm/group_factory.h"

namespace forerun::comm {

class LocalWorld;

// Ranks that are threads of one process meet here. One hub is shared by all ranks of a world; each
// rank gets one factory from it, makes its groups, and lets go first of them and then of the
// factory: with that it has left, and what still waits for it fails. Whatever fails, in any group,
// fails all groups of the world.
//
// Nothing spins and no thread waits for another rank's: a collective moves when its last rank
// arrives. Small ones are moved at once by the arriving thread, for all ranks, which spares eight
// ranks on two cores the wake-ups; larger ones are moved by each rank's progress thread, its own
// part, and a message by its receiver's. The arithmetic is the same either way. Collectives of a
// group end in the order in which they were issued, whichever way they move. Callbacks of a rank's
// works run on its progress thread.
class LocalHub {
 public:
  struct Options {
    std::chrono::milliseconds deadline = std::chrono::minutes(10);  // of every wait
    int64_t inline_bytes = 64 << 10;  // of all ranks together: what counts as small
  };

  LocalHub(int world_size, const Options& options);
  ~LocalHub();
  LocalHub(const LocalHub&) = delete;
  LocalHub& operator=(const LocalHub&) = delete;

  int world_size() const;
  // Once a rank. Any thread; the factory and its groups then belong to the rank. All ranks join
  // before any issues an operation.
  std::unique_ptr<GroupFactory> Join(int rank);
  // Fails all groups of the world; the first status wins.
  void Abort(const absl::Status& status);
  // The first failure, or OK.
  absl::Status status() const;

 private:
  const std::shared_ptr<LocalWorld> world_;
};

}  // namespace forerun::comm
