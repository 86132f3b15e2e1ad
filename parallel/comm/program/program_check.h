// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "parallel/comm/program/program.h"

namespace forerun::comm {

// The programs of all ranks of a job. Ranks that do the same share one program: each has groups of
// its own in the places of the program's.
class JobPrograms {
 public:
  struct Rank {
    const Program* program = nullptr;
    std::vector<int> groups;  // in groups(), by the program's group
  };

  // The next rank, counted from 0. `groups` are its own, as many as the program has; the program
  // outlives this. Fails where another rank has put other members in a group of that name, or a
  // rank is not in its own.
  absl::Status AddRank(const Program& program, absl::Span<const GroupIdentity> groups);

  absl::Span<const Rank> ranks() const { return ranks_; }
  absl::Span<const GroupIdentity> groups() const { return groups_; }

 private:
  std::vector<Rank> ranks_;
  std::vector<GroupIdentity> groups_;
  absl::flat_hash_map<std::string, int> index_;
};

// Runs all programs together, in symbols: nothing moves. An issue never blocks; a collective ends
// when all ranks of its group have issued it, a message when both ends have (rendezvous), first in
// first out a direction; a wait blocks until its operation has ended.
//
// OK means that every rank comes to the end of its program, with every operation ended, and that
// all ranks of a group issued the same collectives (kind, reduction, dtype, size, root) in one
// order, and both ends of a message the same size. What a rank waits for and issues depends on no
// timing, so what holds for this one run holds for all. (A driver may issue an operation later than
// here, when an earlier one of that same group ends; that adds no wait, for ranks issue it alike.)
//
// Otherwise the first mismatch, or ranks that wait for each other for ever, in one sentence: group,
// world ranks and operations. Pure. Time is proportional to the events of all ranks.
absl::Status CheckPrograms(const JobPrograms& job);

}  // namespace forerun::comm
