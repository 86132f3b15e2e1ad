// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/blend_order.h"
#include "data/blend_spec.h"
#include "data/dataset.h"
#include "data/gpt_dataset.h"
#include "data/indexed_dataset.h"
#include "data/split.h"

namespace forerun {

// Samples of several data sets, mixed as BlendOrder says. Each data set runs through epochs of its
// own, as often as its share asks for; an epoch of the blend is as many samples as all have, and
// with sizes for shares it is each sample once.
class BlendedDataset final : public Dataset {
 public:
  // At least one part, all of one sample length and vocabulary; one share a part.
  BlendedDataset(std::vector<std::shared_ptr<const Dataset>> parts, std::vector<int64_t> shares);

  int64_t size() const override { return size_; }
  int64_t seq_length() const override { return parts_.front()->seq_length(); }
  int64_t vocab_size() const override { return parts_.front()->vocab_size(); }
  absl::Status Get(int64_t sample, absl::Span<int32_t> tokens) const override;

 private:
  const std::vector<std::shared_ptr<const Dataset>> parts_;
  const BlendOrder order_;
  int64_t size_ = 0;
};

// The corpora of a --data-path, open.
class CorpusBlend {
 public:
  // Fails naming the file that is faulty.
  static absl::StatusOr<CorpusBlend> Open(const BlendSpec& spec);

  // The part of a blend: every corpus is split alike. A corpus of which the part has no whole
  // sample has no share in it; that all are such is an error, and that one is, in training.
  absl::StatusOr<std::shared_ptr<const Dataset>> Part(const Split& split,
                                                      const GptDatasetOptions& options) const;

 private:
  std::vector<std::shared_ptr<const IndexedDataset>> corpora_;
  std::vector<double> weights_;
};

}  // namespace forerun
