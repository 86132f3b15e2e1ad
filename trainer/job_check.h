// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "parallel/topology/grid.h"
#include "trainer/meta_rank.h"
#include "trainer/rank_trainer.h"

namespace forerun {

// What a check of a whole job has verified.
struct JobCheckReport {
  int ranks = 0;
  int recorded = 0;        // ranks whose own program was recorded
  int programs = 0;        // that differ
  int steps = 0;           // training steps, after set-up
  int microbatches = 0;    // of each of these steps: MicrobatchesToRun()
  int64_t operations = 0;  // collectives and messages, of all ranks
  double bytes = 0.0;      // of all ranks' tensors at their peaks

  std::string ToString() const;
};

// Whether the ranks of a job would come to its end together: the communication of all of them, from
// set-up through two training steps (the second meets the gathers that the first has left), is
// recorded on meta tensors and run in symbols (parallel/comm/program/program_check.h). No message
// is sent. Fails with the first mismatch or circle of waits, or as a rank's set-up would.
//
// Up to kMostRecorded ranks, each one's own program is recorded. Above, one a pipeline stage: the
// stage's other ranks run the same code on the same shapes, which they verify with each other when
// they are set up (parallel/data_parallel/data_parallel.h). So they move in step, and the first
// ranks of all stages stand for the job. Of many microbatches MicrobatchesToRun are: between a
// schedule's beginning and its end it repeats itself.
//
// Buckets that a job would plan from measured costs are planned from nominal ones (meta_rank.h).
//
// `inspect` sees the first rank of each stage, in order.
inline constexpr int kMostRecorded = 64;
int MicrobatchesToRun(int64_t microbatches, int stages);
absl::StatusOr<JobCheckReport> CheckJob(
    const Grid& grid, const ChunkFactory& make_chunk, RankTrainerOptions options,
    absl::FunctionRef<void(const MetaRank&)> inspect = [](const MetaRank&) {});

}  // namespace forerun
