// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/random/random.h"
#include "data/dataset.h"
#include "data/indexed_dataset.h"
#include "data/split.h"

namespace forerun {

struct GptDatasetOptions {
  int64_t seq_length = 0;
  int64_t vocab_size = 0;
  uint64_t seed = 0;
  SplitPart part = SplitPart::kTrain;
};

// One part of a corpus as samples for a language model.
//
// The documents of the part, one after the other, are a stream of n tokens. Piece k is the tokens
// [k s, k s + s + 1) for s = seq_length: neighbours share a token, the last partial piece is left
// out, and there are (n - 1) / s. Sample i of epoch e (index e * size() + i) is piece
//   PermutationAt(Root(seed).Fold("data").Fold(part).Fold(e), size(), i)
// so an epoch meets each piece once, in its own order, and nothing is stored but an offset for
// each sequence.
class GptDataset final : public Dataset {
 public:
  // Fails where the part has no whole sample. The part of the corpus is split.Documents().
  static absl::StatusOr<std::unique_ptr<const GptDataset>> Create(
      std::shared_ptr<const IndexedDataset> corpus, const Split& split,
      const GptDatasetOptions& options);

  int64_t size() const override { return size_; }
  int64_t seq_length() const override { return options_.seq_length; }
  int64_t vocab_size() const override { return options_.vocab_size; }
  absl::Status Get(int64_t sample, absl::Span<int32_t> tokens) const override;

 private:
  GptDataset(std::shared_ptr<const IndexedDataset> corpus, const GptDatasetOptions& options,
             DocumentRange documents);
  absl::Status CheckVocabulary(absl::Span<const int32_t> tokens) const;
  absl::Status ReadStream(int64_t begin, absl::Span<int32_t> tokens) const;
  int64_t stream_tokens() const { return offsets_.back(); }

  const std::shared_ptr<const IndexedDataset> corpus_;
  const GptDatasetOptions options_;
  const RandomKey key_;
  const int64_t first_sequence_;
  // Where sequence first_sequence_ + i starts in the stream; one more entry for the end.
  std::vector<int64_t> offsets_;
  int64_t size_ = 0;
};

}  // namespace forerun
