// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "parallel/comm/group_factory.h"

namespace forerun::comm {

// Ranks that are threads of one process meet here. One hub is shared by all ranks of a world; each
// rank gets one factory from it, makes its groups, and lets go of both before the hub ends.
//
// Nothing spins and no thread waits for another rank's: a collective moves when its last rank
// arrives. Small ones are moved at once by the arriving thread, for all ranks, which spares eight
// ranks on two cores the wake-ups; larger ones are moved by each rank's progress thread, its own
// part. The arithmetic is the same either way.
class LocalHub {
 public:
  struct Options {
    std::chrono::milliseconds deadline = std::chrono::minutes(10);  // of every wait
    int64_t inline_bytes = 64 << 10;  // of all ranks together
  };

  LocalHub(int world_size, const Options& options);
  ~LocalHub();
  LocalHub(const LocalHub&) = delete;
  LocalHub& operator=(const LocalHub&) = delete;

  int world_size() const;
  // One a rank. Any thread; the factory and its groups then belong to the rank.
  std::unique_ptr<GroupFactory> Join(int rank);
  // Fails all groups of the world; the first status wins.
  void Abort(const absl::Status& status);
  // The first failure, or OK.
  absl::Status status() const;

 private:
  class Core;
  class Group;
  class Factory;
  const std::shared_ptr<Core> core_;
};

}  // namespace forerun::comm
