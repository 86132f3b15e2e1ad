// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

// Counter-based randomness: a value is a pure function of (key, logical index), so it does not
// depend on tp, pp, dp, on threads, or on what was drawn before.
//
// Generator: Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). Block c of a key is four 32-bit words; logical index i is word i % 4 of
// block i / 4.
namespace forerun {

// Names a stream of randomness. Folding is order-sensitive: Root(seed).Fold("a").Fold(1).
//   Root(s) = Mix(s);  Fold(n) = Mix(value ^ n);  Fold(text) = Fold(FNV-1a-64(text));
//   Mix is the finaliser of splitmix64 after adding 0x9e3779b97f4a7c15.
class RandomKey {
 public:
  static RandomKey Root(uint64_t seed);
  RandomKey Fold(absl::string_view name) const;
  RandomKey Fold(uint64_t number) const;
  uint64_t value() const { return value_; }
  bool operator==(const RandomKey&) const = default;

 private:
  explicit RandomKey(uint64_t value) : value_(value) {}
  uint64_t value_;
};

// The four words of block `counter`. Key words: low and high half of key; counter words: low and
// high half of `counter`, then two zeros.
std::array<uint32_t, 4> Philox(uint64_t key, uint64_t counter);

// Uniform in [0, 1): the top 24 bits of the word times 2^-24.
float UniformAt(RandomKey key, uint64_t index);

// out[i] = the normal value of logical index begin + i, times `stddev`. Box-Muller in double on
// the word pairs (0,1) and (2,3) of a block: u = (word + 0.5) / 2^32, and the pair (a, b) gives
// sqrt(-2 ln a) * (cos 2 pi b, sin 2 pi b).
void FillNormal(RandomKey key, uint64_t begin, double stddev, absl::Span<float> out);

// Element `index` of a permutation of [0, count) that the key chooses: a Feistel network over the
// next power of four, walked until it lands inside. O(1) memory. 0 <= index < count.
uint64_t PermutationAt(RandomKey key, uint64_t count, uint64_t index);

}  // namespace forerun
