// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "parallel/comm/group_factory.h"
#include "parallel/comm/process_group.h"

namespace forerun::comm {

// When an operation of a fake group ends. kWhenWaited: in the first wait for it, which then runs
// its callbacks; so a rank goes the way of one whose operations take long, and every wait that it
// may come to is a wait.
enum class FakeEnd : uint8_t { kAtOnce, kWhenWaited };

// Groups in which nothing moves: any rank of a world of any size, alone in its process, on meta
// tensors or on real ones whose values then do not matter. An aborted group's later operations end
// with its error. What is issued can be written down by a RecordingGroupFactory around this. One
// thread.
class FakeGroupFactory final : public GroupFactory {
 public:
  FakeGroupFactory(int rank, int world_size, FakeEnd end = FakeEnd::kAtOnce)
      : rank_(rank), world_size_(world_size), end_(end) {}
  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  std::unique_ptr<ProcessGroup> Create(const std::string& name,
                                       absl::Span<const int> members) override;

 private:
  const int rank_;
  const int world_size_;
  const FakeEnd end_;
};

}  // namespace forerun::comm
