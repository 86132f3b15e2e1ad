// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/types/span.h"
#include "parallel/comm/process_group.h"

namespace forerun::comm {

// This rank's way to make groups. Every member of a group makes it, with the same name and the same
// members in the same order; a rank that is not a member does not call. Any two groups are
// independent, groups of the same members too.
class GroupFactory {
 public:
  virtual ~GroupFactory() = default;
  virtual int rank() const = 0;  // world rank
  virtual int world_size() const = 0;
  virtual std::unique_ptr<ProcessGroup> Create(const std::string& name,
                                               absl::Span<const int> members) = 0;
};

}  // namespace forerun::comm
