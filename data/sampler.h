// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace forerun {

// One microbatch of one data-parallel rank in one step.
struct MicrobatchPlace {
  int64_t consumed_samples = 0;  // by all ranks in all steps before this one
  int64_t microbatch = 0;        // j, within the step
  int64_t data_parallel_rank = 0;
  int64_t data_parallel_size = 1;
  int64_t micro_batch_size = 1;
};

// The samples of a microbatch, of which the first may be asked for alone: element i is
//   consumed + (j * data_parallel_size + data_parallel_rank) * micro_batch_size + i.
// The ranks' microbatches of a step tile the samples that follow `consumed`, so a step of
// global_batch_size samples takes the same ones whatever the layout; which tokens they are is the
// data set's pure function of its seed and the index. Nothing else is state.
int64_t FirstSample(const MicrobatchPlace& place);
std::vector<int64_t> MicrobatchSamples(const MicrobatchPlace& place);

}  // namespace forerun
