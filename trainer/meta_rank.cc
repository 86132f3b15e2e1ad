// SPDX-License-Identifier: Apache-2.0
#include "trainer/meta_rank.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/ops/meta/kernels.h"
#include "parallel/data_parallel/cost_model.h"

namespace forerun {

MetaRank::MetaRank(int rank, const Grid& grid)
    : runtime_(meta::Kernels()),
      fake_(rank, grid.world_size(), comm::FakeEnd::kWhenWaited),
      factory_(fake_) {}

absl::StatusOr<std::unique_ptr<MetaRank>> MetaRank::Run(int rank, const Grid& grid,
                                                        const ChunkFactory& make_chunk,
                                                        const RankTrainerOptions& options,
                                                        int steps) {
  RankTrainerOptions without_values = options;
  without_values.data_parallel.poison_stale_params = false;
  if (!options.data_parallel.costs.has_value()) {  // time means nothing here
    without_values.data_parallel.costs = Costs::Nominal();
  }
  std::unique_ptr<MetaRank> result(new MetaRank(rank, grid));
  FR_ASSIGN_OR_RETURN(result->trainer_,
                      RankTrainer::CreateWithoutValues(result->runtime_.ops, result->factory_, grid,
                                                       make_chunk, without_values));
  for (int step = 1; step <= steps; ++step) {
    FR_RETURN_IF_ERROR(result->trainer_->TraceStep(step));
  }
  const MetaAllocator& allocator = result->runtime_.allocator;
  result->step_bytes_ = allocator.peak_bytes() - allocator.bytes_in_use();
  return result;
}

comm::Program MetaRank::Finish(std::unique_ptr<MetaRank> rank) {
  rank->trainer_.reset();  // waits for what is under way
  return rank->factory_.program();
}

}  // namespace forerun
