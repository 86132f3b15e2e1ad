// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/types/span.h"
#include "parallel/comm/group_factory.h"
#include "parallel/comm/program/program.h"

namespace forerun::comm {

// Groups of any backend that write down one rank's program: what is issued, and the first wait for
// each operation. Nothing else about them changes. Any thread may call.
class RecordingGroupFactory final : public GroupFactory {
 public:
  explicit RecordingGroupFactory(GroupFactory& inner);  // outlives this and the groups
  ~RecordingGroupFactory() override;

  int rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  std::unique_ptr<ProcessGroup> Create(const std::string& name,
                                       absl::Span<const int> members) override;

  // What was recorded so far.
  Program program() const;

 private:
  class Recorder;

  GroupFactory& inner_;
  const std::shared_ptr<Recorder> recorder_;  // shared with groups and works
};

}  // namespace forerun::comm
