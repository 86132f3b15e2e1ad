// SPDX-License-Identifier: Apache-2.0
#include "data/blended_dataset.h"

#include <utility>

#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace forerun {

BlendedDataset::BlendedDataset(std::vector<std::shared_ptr<const Dataset>> parts,
                               std::vector<int64_t> shares)
    : parts_(std::move(parts)), order_(std::move(shares)) {
  for (const auto& part : parts_) {
    FR_CHECK_EQ(part->seq_length(), seq_length());
    FR_CHECK_EQ(part->vocab_size(), vocab_size());
    size_ += part->size();
  }
}

absl::Status BlendedDataset::Get(int64_t sample, absl::Span<int32_t> tokens) const {
  const BlendOrder::Place place = order_.At(sample);
  return parts_[place.dataset]->Get(place.sample, tokens);
}

absl::StatusOr<CorpusBlend> CorpusBlend::Open(const BlendSpec& spec) {
  CorpusBlend blend;
  blend.weights_ = spec.weights;
  for (const std::string& prefix : spec.prefixes) {
    FR_ASSIGN_OR_RETURN(blend.corpora_.emplace_back(), IndexedDataset::Open(prefix));
  }
  return blend;
}

absl::StatusOr<std::shared_ptr<const Dataset>> CorpusBlend::Part(
    const Split& split, const GptDatasetOptions& options) const {
  std::vector<std::shared_ptr<const Dataset>> parts;
  std::vector<double> weights;
  std::vector<int64_t> sizes;
  absl::Status too_small;
  for (size_t i = 0; i < corpora_.size(); ++i) {
    auto part = GptDataset::Create(corpora_[i], split, options);
    if (!part.ok()) {
      too_small.Update(part.status());
      continue;
    }
    sizes.push_back((*part)->size());
    if (!weights_.empty()) weights.push_back(weights_[i]);
    parts.push_back(*std::move(part));
  }
  if (parts.empty() || options.part == SplitPart::kTrain) FR_RETURN_IF_ERROR(too_small);
  return std::make_shared<BlendedDataset>(std::move(parts),
                                          weights.empty() ? sizes : SharesOfWeights(weights));
}

}  // namespace forerun
