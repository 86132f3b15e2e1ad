// SPDX-License-Identifier: Apache-2.0
#include "trainer/job_check.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"
#include "parallel/comm/program/program.h"
#include "parallel/comm/program/program_check.h"

namespace forerun {
namespace {

constexpr int kSteps = 2;

// The ranks that are run: all, or the first of each stage.
std::vector<int> RanksToRun(const Grid& grid) {
  const int one_a_stage = grid.tp_size() * grid.dp_size();
  const int stride = grid.world_size() <= kMostRecorded ? 1 : one_a_stage;
  std::vector<int> ranks;
  for (int rank = 0; rank < grid.world_size(); rank += stride) ranks.push_back(rank);
  return ranks;
}

// Groups as far as `ranks`, ascending, are in them, which are counted anew.
std::vector<comm::GroupIdentity> Within(absl::Span<const int> ranks,
                                        std::vector<comm::GroupIdentity> groups) {
  for (comm::GroupIdentity& group : groups) {
    std::vector<int> members;
    for (int member : group.members) {
      const auto found = std::lower_bound(ranks.begin(), ranks.end(), member);
      if (found == ranks.end() || *found != member) continue;
      members.push_back(static_cast<int>(found - ranks.begin()));
    }
    group.members = std::move(members);
  }
  return groups;
}

// Programs that differ, each held once.
class ProgramPool {
 public:
  // `groups` are the program's.
  const comm::Program& Add(comm::Program program, std::vector<comm::GroupIdentity> groups) {
    program.groups = std::move(groups);
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
      "verified: set-up and %d steps of %d microbatches on %d ranks, %d operations, %d distinct "
      "programs recorded on %d ranks; all ranks of a group issue the same operations in one order, "
      "and no rank waits "
      "for ever",
      steps, microbatches, ranks, operations, programs, recorded);
}

int MicrobatchesToRun(int64_t microbatches, int stages) {
  constexpr int64_t kEnough = 16;  // and for every stage to be filled, and emptied
  return static_cast<int>(std::min(microbatches, std::max(kEnough, 2 * int64_t{stages})));
}

absl::StatusOr<JobCheckReport> CheckJob(const Grid& grid, const ChunkFactory& make_chunk,
                                        RankTrainerOptions options,
                                        absl::FunctionRef<void(const MetaRank&)> inspect) {
  const int64_t samples = options.micro_batch_size * grid.dp_size();  // of a microbatch
  JobCheckReport report;
  report.ranks = grid.world_size();
  report.steps = kSteps;
  report.microbatches = MicrobatchesToRun(options.global_batch_size / samples, grid.pp_size());
  options.global_batch_size = report.microbatches * samples;
  FR_ASSIGN_OR_RETURN(options.schedule, MakeSchedule(options, grid));
  ProgramPool pool;
  comm::JobPrograms job;
  const std::vector<int> ranks = RanksToRun(grid);
  const int64_t alike = grid.world_size() / static_cast<int64_t>(ranks.size());
  for (int rank : ranks) {
    FR_ASSIGN_OR_RETURN(std::unique_ptr<MetaRank> recorded,
                        MetaRank::Run(rank, grid, make_chunk, options, kSteps));
    const Coordinates at = grid.CoordinatesOf(rank);
    if (at.tp == 0 && at.dp == 0) inspect(*recorded);
    report.bytes += static_cast<double>(alike) * static_cast<double>(recorded->peak_bytes());
    comm::Program own = MetaRank::Finish(std::move(recorded));
    const std::vector<comm::GroupIdentity> groups = Within(ranks, std::move(own.groups));
    const comm::Program& program = pool.Add(std::move(own), groups);
    FR_RETURN_IF_ERROR(job.AddRank(program, groups));
    report.operations += alike * program.operation_count();
  }
  FR_RETURN_IF_ERROR(comm::CheckPrograms(job));
  report.recorded = static_cast<int>(ranks.size());
  report.programs = pool.size();
  return report;
}

}  // namespace forerun
