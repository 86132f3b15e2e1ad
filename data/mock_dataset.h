// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/random/random.h"
#include "data/dataset.h"

namespace forerun {

// Samples without files, of which a model can learn something: a token is followed, three times of
// four, by its successor in a permutation of the vocabulary that the seed chooses, otherwise by any
// token. The best loss over a large vocabulary V is about 0.56 + ln(V) / 4 nats.
class MockDataset final : public Dataset {
 public:
  MockDataset(int64_t size, int64_t seq_length, int64_t vocab_size, uint64_t seed);

  int64_t size() const override { return size_; }
  int64_t seq_length() const override { return seq_length_; }
  int64_t vocab_size() const override { return vocab_size_; }
  // Never fails. Samples of later epochs are new.
  absl::Status Get(int64_t sample, absl::Span<int32_t> tokens) const override;

 private:
  const int64_t size_;
  const int64_t seq_length_;
  const int64_t vocab_size_;
  const RandomKey key_;
};

}  // namespace forerun
