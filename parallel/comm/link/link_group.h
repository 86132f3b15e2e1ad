// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/types/span.h"
#include "parallel/comm/group_factory.h"
#include "parallel/comm/link/link.h"

namespace forerun::comm {

// Groups of any backend, as if each rank reached the others over a link: the results of the inner
// group, later. For tests and benches of overlap, in wall or virtual time.
//
// An operation ends when both the inner one and its occupancy of the link have. It takes its place
// on the link when it is issued, but a Recv when its message has come (the inner Recv has ended): a
// receive that is posted early keeps nobody off the link, and its message takes its time from when
// it was sent. An error ends what the inner group still has in hand at once, and what is on the
// link at its time.
//
// A group of one uses no link. Callbacks run on the clock's thread. In virtual time a wait moves
// the clock on until its operation has ended; the inner groups are then such as end without another
// thread (fake ones).
class LinkGroupFactory final : public GroupFactory {
 public:
  // The link of a new group; null for none.
  using LinkOf =
      std::function<std::shared_ptr<Link>(const std::string& name, absl::Span<const int> members)>;

  // `inner` outlives this and the groups.
  LinkGroupFactory(GroupFactory& inner, LinkOf link_of);
  // One link for all groups of the rank.
  LinkGroupFactory(GroupFactory& inner, std::shared_ptr<Link> link);

  int rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  std::unique_ptr<ProcessGroup> Create(const std::string& name,
                                       absl::Span<const int> members) override;

 private:
  GroupFactory& inner_;
  const LinkOf link_of_;
};

}  // namespace forerun::comm
