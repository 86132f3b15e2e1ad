// SPDX-License-Identifier: Apache-2.0
#include "data/sampler.h"

#include <numeric>

#include "core/base/check.h"

namespace forerun {

int64_t FirstSample(const MicrobatchPlace& place) {
  FR_CHECK_GE(place.consumed_samples, 0);
  FR_CHECK_GE(place.microbatch, 0);
  FR_CHECK(place.data_parallel_rank >= 0 && place.data_parallel_rank < place.data_parallel_size)
      << "rank " << place.data_parallel_rank << " of " << place.data_parallel_size;
  const int64_t microbatches_before =
      place.microbatch * place.data_parallel_size + place.data_parallel_rank;
  return place.consumed_samples + microbatches_before * place.micro_batch_size;
}

std::vector<int64_t> MicrobatchSamples(const MicrobatchPlace& place) {
  std::vector<int64_t> samples(static_cast<size_t>(place.micro_batch_size));
  std::iota(samples.begin(), samples.end(), FirstSample(place));
  return samples;
}

}  // namespace forerun
