// SPDX-License-Identifier: Apache-2.0
#include "data/blend_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/check.h"

namespace forerun {
namespace {

// Indices between kept counts: a balance of memory and of the walk from them to an index.
constexpr int64_t kBlock = 1024;

__extension__ using Wide = __int128;

}  // namespace

std::vector<int64_t> SharesOfWeights(absl::Span<const double> weights) {
  constexpr double kTotal = static_cast<double>(int64_t{1} << 40);
  const double largest = *std::max_element(weights.begin(), weights.end());
  // Relative to the largest, as the sum of finite weights need not be finite.
  double sum = 0.0;
  for (const double weight : weights) sum += weight / largest;
  std::vector<int64_t> shares;
  for (const double weight : weights) {
    shares.push_back(std::max<int64_t>(1, std::llround(weight / largest / sum * kTotal)));
  }
  return shares;
}

BlendOrder::BlendOrder(std::vector<int64_t> shares)
    : shares_(std::move(shares)),
      total_(std::accumulate(shares_.begin(), shares_.end(), int64_t{0})),
      taken_{std::vector<int64_t>(shares_.size(), 0)} {
  FR_CHECK(!shares_.empty());
  for (const int64_t share : shares_) FR_CHECK_GE(share, 1);
}

BlendOrder::Place BlendOrder::At(int64_t index) const {
  FR_CHECK_GE(index, 0);
  const int64_t block = index / kBlock;
  std::vector<int64_t> taken = TakenBefore(block);
  for (int64_t i = block * kBlock; i < index; ++i) ++taken[Next(i, taken)];
  const size_t dataset = Next(index, taken);
  return {static_cast<int64_t>(dataset), taken[dataset]};
}

size_t BlendOrder::Next(int64_t index, const std::vector<int64_t>& taken) const {
  size_t best = shares_.size();
  for (size_t i = 0; i < shares_.size(); ++i) {
    if (Wide{taken[i]} * total_ >= Wide{shares_[i]} * (index + 1)) continue;
    if (best == shares_.size() ||
        Wide{shares_[i]} * (taken[best] + 1) > Wide{shares_[best]} * (taken[i] + 1)) {
      best = i;
    }
  }
  // The counts sum to `index`, so not all of them can have reached their quota of index + 1.
  return best;
}

std::vector<int64_t> BlendOrder::TakenBefore(int64_t block) const {
  MutexLock lock(&mutex_);
  while (static_cast<int64_t>(taken_.size()) <= block) {
    std::vector<int64_t> taken = taken_.back();
    const int64_t begin = (static_cast<int64_t>(taken_.size()) - 1) * kBlock;
    for (int64_t i = begin; i < begin + kBlock; ++i) ++taken[Next(i, taken)];
    taken_.push_back(std::move(taken));
  }
  return taken_[block];
}

}  // namespace forerun
