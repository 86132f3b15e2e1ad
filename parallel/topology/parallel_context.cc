// SPDX-License-Identifier: Apache-2.0
#include "parallel/topology/parallel_context.h"

#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"

namespace forerun {

ParallelContext::ParallelContext(const Grid& grid, comm::GroupFactory& factory)
    : grid_(grid), rank_(factory.rank()), at_(grid.CoordinatesOf(factory.rank())) {
  const auto make = [&](const char* name, const std::vector<int>& members) {
    return factory.Create(absl::StrCat(name, members.front()), members);
  };
  std::vector<int> all(grid.world_size());
  std::iota(all.begin(), all.end(), 0);
  world_ = make("world", all);
  tensor_ = make("tp", grid.Members(Axis::kTensor, rank_));
  pipeline_ = make("pp", grid.Members(Axis::kPipeline, rank_));
  grad_reduce_ = make("dp-reduce", grid.Members(Axis::kData, rank_));
  param_gather_ = make("dp-gather", grid.Members(Axis::kData, rank_));
  const bool outer = first_stage() || last_stage();
  embedding_ = make("embedding", outer ? grid.EmbeddingMembers(rank_) : std::vector<int>{rank_});
  self_ = make("self", {rank_});
}

}  // namespace forerun
