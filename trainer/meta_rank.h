// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "parallel/comm/fake/fake_group.h"
#include "parallel/comm/program/program.h"
#include "parallel/comm/program/recording_group.h"
#include "parallel/topology/grid.h"
#include "trainer/rank_runtime.h"
#include "trainer/rank_trainer.h"

namespace forerun {

// One rank of a job of any size, alone and without memory: the trainer itself, on meta tensors over
// groups that move nothing and write down what it issues. One thread.
class MetaRank {
 public:
  // Runs set-up and `steps` training steps. Fails as the rank's own set-up would. Nothing is
  // measured: buckets that are to be chosen are planned with the options' costs, or nominal ones.
  static absl::StatusOr<std::unique_ptr<MetaRank>> Run(int rank, const Grid& grid,
                                                       const ChunkFactory& make_chunk,
                                                       const RankTrainerOptions& options,
                                                       int steps);

  const RankTrainer& trainer() const { return *trainer_; }
  // Bytes that a step needs at its peak beyond what is there between steps.
  int64_t step_bytes() const { return step_bytes_; }
  // All that the rank needs at its peak.
  int64_t peak_bytes() const { return runtime_.allocator.peak_bytes(); }
  // The rank's communication from set-up to its end, which this is.
  static comm::Program Finish(std::unique_ptr<MetaRank> rank);

 private:
  MetaRank(int rank, const Grid& grid);

  MetaRuntime runtime_;
  comm::FakeGroupFactory fake_;
  comm::RecordingGroupFactory factory_;
  std::unique_ptr<RankTrainer> trainer_;
  int64_t step_bytes_ = 0;
};

}  // namespace forerun
