// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "core/autograd/testing/test_device.h"
#include "core/ops/op_context.h"
#include "parallel/comm/group_factory.h"
#include "parallel/comm/local/local_hub.h"
#include "parallel/comm/process_group.h"

namespace forerun {

// What one rank of a RankJob is given.
struct RankContext {
  int rank;
  const OpContext& op;
  comm::GroupFactory& factory;
  comm::ProcessGroup& group;  // "dp", of all ranks
};

// A test's ranks: threads over local groups. Their memory belongs to the job, for a message that
// broke off may hold some until the last rank has ended.
class RankJob {
 public:
  explicit RankJob(int ranks, const comm::LocalHub::Options& hub = {});

  // Runs rank_main on every rank; the first error, or OK. May be called again.
  absl::Status Run(const std::function<absl::Status(const RankContext&)>& rank_main);

 private:
  const comm::LocalHub::Options hub_;
  std::vector<std::unique_ptr<TestDevice>> devices_;
};

}  // namespace forerun
