// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/types/span.h"
#include "core/base/mutex.h"

namespace forerun {

// Weights as the integer shares that BlendOrder takes, exact to 2^-40 of their sum; each at
// least 1.
std::vector<int64_t> SharesOfWeights(absl::Span<const double> weights);

// Where each sample of a blend comes from: a pure function of the shares and the index. Any thread
// may call.
//
// With share q_i of Q = sum of q, and c_i of the first n samples taken from data set i, sample n
// comes from the data set with the largest q_i / (c_i + 1) among those with c_i < q_i (n + 1) / Q;
// the first of equals. This is the quota method (Balinski, Young 1975), and gives
//  1. |c_i - q_i n / Q| < 1 for every n and i. (Taking whoever lags most, as Megatron-LM does, keeps
//     that for two data sets only: of eight, one can lag by more than 1.6 samples.)
//  2. A data set's samples come in order, none left out: its k-th in the blend is its sample k.
class BlendOrder {
 public:
  struct Place {
    int64_t dataset = 0;
    int64_t sample = 0;  // of that data set
  };

  // At least one share, each above 0; their sum is at most 2^62.
  explicit BlendOrder(std::vector<int64_t> shares);

  // The first call for an index takes time in proportion to it; what it found out is kept.
  Place At(int64_t index) const;

 private:
  size_t Next(int64_t index, const std::vector<int64_t>& taken) const;
  std::vector<int64_t> TakenBefore(int64_t block) const;

  const std::vector<int64_t> shares_;
  const int64_t total_;
  mutable Mutex mutex_;
  // Samples taken from each data set before each block of indices, as far as anybody asked.
  mutable std::vector<std::vector<int64_t>> taken_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace forerun
