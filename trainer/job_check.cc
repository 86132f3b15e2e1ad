// SPDX-License-Identifier: Apache-2.0
#include "trainer/job_check.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "parallel/comm/fake/fake_group.h"
#include "parallel/comm/program/program.h"
#include "parallel/comm/program/program_check.h"
#include "parallel/comm/program/recording_group.h"
#include "parallel/topology/parallel_context.h"

namespace forerun {
namespace {

constexpr int kSteps = 2;

// The groups that a rank makes.
std::vector<comm::GroupIdentity> GroupsOf(int rank, const Grid& grid) {
  comm::FakeGroupFactory fake(rank, grid.world_size());
  comm::RecordingGroupFactory factory(fake);
  const ParallelContext parallel(grid, factory);
  return factory.program().groups;
}

// Programs that differ, each held once.
class ProgramPool {
 public:
  const comm::Program& Add(comm::Program program) {
    const auto same = std::find_if(pool_.begin(), pool_.end(), [&](const comm::Program& other) {
      return other.operations == program.operations && other.events == program.events;
    });
    return same != pool_.end() ? *same : pool_.emplace_back(std::move(program));
  }
  int size() const { return static_cast<int>(pool_.size()); }

 private:
  std::deque<comm::Program> pool_;  // addresses stay
};

}  // namespace

std::string JobCheckReport::ToString() const {
  return absl::StrFormat(
      "verified: set-up and %d steps of %d ranks, %d operations, %d distinct programs recorded on "
      "%d ranks; all ranks of a group issue the same operations in one order, and no rank waits "
      "for ever",
      steps, ranks, operations, programs, recorded);
}

absl::StatusOr<JobCheckReport> CheckJob(const Grid& grid, const ChunkFactory& make_chunk,
                                        const RankTrainerOptions& options,
                                        absl::FunctionRef<void(const MetaRank&)> inspect) {
  JobCheckReport report;
  report.steps = kSteps;
  ProgramPool pool;
  comm::JobPrograms job;
  const comm::Program* program = nullptr;
  for (int rank = 0; rank < grid.world_size(); ++rank) {
    const Coordinates at = grid.CoordinatesOf(rank);
    const bool first_of_stage = at.tp == 0 && at.dp == 0;
    if (first_of_stage || grid.world_size() <= kMostRecorded) {
      FR_ASSIGN_OR_RETURN(std::unique_ptr<MetaRank> recorded,
                          MetaRank::Run(rank, grid, make_chunk, options, kSteps));
      if (first_of_stage) inspect(*recorded);
      program = &pool.Add(MetaRank::Finish(std::move(recorded)));
      ++report.recorded;
    }
    FR_RETURN_IF_ERROR(job.AddRank(*program, GroupsOf(rank, grid)));
    report.operations += program->operation_count();
  }
  FR_RETURN_IF_ERROR(comm::CheckPrograms(job));
  report.ranks = grid.world_size();
  report.programs = pool.size();
  return report;
}

}  // namespace forerun
