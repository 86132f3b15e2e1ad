// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "absl/types/span.h"

namespace forerun {

// A sum of doubles kept exactly, as an integer: its bits do not depend on the order or the grouping
// of what was added, so neither shards nor buckets nor overlap show in it. Limb i has weight
// 2^(32 i + kLowestBit); limbs hold more than 32 bits while they are added to, so that two sums
// are added limb by limb (also by an all-reduce of int64) without losing anything.
//
// Range: values of magnitude below 2^300; bits below 2^-320 are dropped (squares of fp32 have none
// there). At most 2^30 additions, the sums of all ranks together. Infinity and NaN are counted
// apart and make the value not finite.
class ExactSum {
 public:
  static constexpr int kLimbs = 21;
  static constexpr int kLowestBit = -320;

  void Add(double value);  // not negative, or not finite
  void Add(const ExactSum& other);
  double Value() const;  // rounded once

  // The state, for adding over ranks: limbs, then the count of values that were not finite.
  absl::Span<int64_t> words() { return absl::MakeSpan(words_); }

 private:
  std::array<int64_t, kLimbs + 1> words_{};
};

// Adds the squares of `values` to `sum` in blocks of kNormBlock elements counted from values[0]:
// each block in double, in a fixed order. values[0] is at a multiple of kNormBlock in its
// parameter, so that a block's value depends on the parameter alone. A parallel loop.
inline constexpr int64_t kNormBlock = 64;
void AddSquares(absl::Span<const float> values, ExactSum& sum);

}  // namespace forerun
