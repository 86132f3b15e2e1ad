// SPDX-License-Identifier: Apache-2.0
#include "data/mock_dataset.h"

#include <array>

#include "core/base/check.h"

namespace forerun {

MockDataset::MockDataset(int64_t size, int64_t seq_length, int64_t vocab_size, uint64_t seed)
    : size_(size),
      seq_length_(seq_length),
      vocab_size_(vocab_size),
      key_(RandomKey::Root(seed).Fold("mock")) {
  FR_CHECK_GE(size, 1);
  FR_CHECK_GE(seq_length, 1);
  FR_CHECK(vocab_size >= 1 && vocab_size <= INT32_MAX) << "a vocabulary of " << vocab_size;
}

absl::Status MockDataset::Get(int64_t sample, absl::Span<int32_t> tokens) const {
  FR_CHECK_GE(sample, 0);
  FR_CHECK_EQ(static_cast<int64_t>(tokens.size()), seq_length_ + 1);
  const uint64_t vocab = static_cast<uint64_t>(vocab_size_);
  const RandomKey successors = key_.Fold("successors");
  const RandomKey draws = key_.Fold("draws").Fold(static_cast<uint64_t>(sample));
  uint64_t previous = 0;
  for (size_t t = 0; t < tokens.size(); ++t) {
    const std::array<uint32_t, 4> words = Philox(draws.value(), t);
    const bool follows = t > 0 && words[0] % 4 != 0;
    // The high half of a 64-bit product maps 32 random bits to [0, vocab).
    const uint64_t any = (uint64_t{words[1]} * vocab) >> 32;
    previous = follows ? PermutationAt(successors, vocab, previous) : any;
    tokens[t] = static_cast<int32_t>(previous);
  }
  return absl::OkStatus();
}

}  // namespace forerun
