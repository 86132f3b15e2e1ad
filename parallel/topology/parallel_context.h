// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "parallel/comm/group_factory.h"
#include "parallel/comm/process_group.h"
#include "parallel/topology/grid.h"

namespace forerun {

// One rank's place in the grid, and its groups. Every rank of the world makes its own, in the same
// order; over fake groups one rank can be made alone. Groups have communicators of their own: no
// order of one binds another. Belongs to its rank.
class ParallelContext {
 public:
  ParallelContext(const Grid& grid, comm::GroupFactory& factory);
  ParallelContext(const ParallelContext&) = delete;
  ParallelContext& operator=(const ParallelContext&) = delete;

  const Grid& grid() const { return grid_; }
  const Coordinates& at() const { return at_; }
  int rank() const { return rank_; }
  bool first_stage() const { return at_.pp == 0; }
  bool last_stage() const { return at_.pp == grid_.pp_size() - 1; }

  comm::ProcessGroup& world() const { return *world_; }
  comm::ProcessGroup& tensor() const { return *tensor_; }
  comm::ProcessGroup& pipeline() const { return *pipeline_; }
  // Gradients and parameters go over the same ranks, and never wait for each other's order.
  comm::ProcessGroup& grad_reduce() const { return *grad_reduce_; }
  comm::ProcessGroup& param_gather() const { return *param_gather_; }
  // First and last stage; a stage between them is alone in a group of its own.
  comm::ProcessGroup& embedding() const { return *embedding_; }
  // This rank alone.
  comm::ProcessGroup& self() const { return *self_; }

 private:
  const Grid grid_;
  const int rank_;
  const Coordinates at_;
  std::unique_ptr<comm::ProcessGroup> world_;
  std::unique_ptr<comm::ProcessGroup> tensor_;
  std::unique_ptr<comm::ProcessGroup> pipeline_;
  std::unique_ptr<comm::ProcessGroup> grad_reduce_;
  std::unique_ptr<comm::ProcessGroup> param_gather_;
  std::unique_ptr<comm::ProcessGroup> embedding_;
  std::unique_ptr<comm::ProcessGroup> self_;
};

}  // namespace forerun
