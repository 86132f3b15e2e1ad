// SPDX-License-Identifier: Apache-2.0
#include "data/gpt_dataset.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"

namespace forerun {

GptDataset::GptDataset(std::shared_ptr<const IndexedDataset> corpus,
                       const GptDatasetOptions& options, DocumentRange documents)
    : corpus_(std::move(corpus)),
      options_(options),
      key_(RandomKey::Root(options.seed).Fold("data").Fold(NameOf(options.part))),
      first_sequence_(corpus_->document_begin(documents.begin)) {
  const int64_t end = corpus_->document_begin(documents.end);
  offsets_.reserve(static_cast<size_t>(end - first_sequence_) + 1);
  offsets_.push_back(0);
  for (int64_t i = first_sequence_; i < end; ++i) {
    offsets_.push_back(offsets_.back() + corpus_->length(i));
  }
  size_ = std::max<int64_t>(0, (stream_tokens() - 1) / options_.seq_length);
}

absl::StatusOr<std::unique_ptr<const GptDataset>> GptDataset::Create(
    std::shared_ptr<const IndexedDataset> corpus, const Split& split,
    const GptDatasetOptions& options) {
  FR_CHECK_GE(options.seq_length, 1);
  FR_CHECK_GE(options.vocab_size, 1);
  const DocumentRange documents = split.Documents(options.part, corpus->documents());
  std::unique_ptr<const GptDataset> dataset(new GptDataset(std::move(corpus), options, documents));
  if (dataset->size() > 0) return dataset;
  return absl::InvalidArgumentError(
      absl::StrCat("the ", NameOf(options.part), " split of ", dataset->corpus_->prefix(), " has ",
                   documents.end - documents.begin, " documents with ", dataset->stream_tokens(),
                   " tokens, and one sample takes ", options.seq_length, " + 1"));
}

absl::Status GptDataset::Get(int64_t sample, absl::Span<int32_t> tokens) const {
  FR_CHECK_GE(sample, 0);
  FR_CHECK_EQ(static_cast<int64_t>(tokens.size()), seq_length() + 1);
  const uint64_t epoch = static_cast<uint64_t>(sample / size_);
  const uint64_t piece = PermutationAt(key_.Fold(epoch), static_cast<uint64_t>(size_),
                                       static_cast<uint64_t>(sample % size_));
  FR_RETURN_IF_ERROR(ReadStream(static_cast<int64_t>(piece) * seq_length(), tokens));
  return CheckVocabulary(tokens);
}

absl::Status GptDataset::ReadStream(int64_t begin, absl::Span<int32_t> tokens) const {
  // The last sequence that starts at or before `begin`; empty ones before it start there too.
  const auto next = std::upper_bound(offsets_.begin(), offsets_.end(), begin);
  size_t sequence = static_cast<size_t>(next - offsets_.begin()) - 1;
  while (!tokens.empty()) {
    const int64_t skip = begin - offsets_[sequence];
    const int64_t left = offsets_[sequence + 1] - begin;
    const size_t count = std::min(tokens.size(), static_cast<size_t>(left));
    const int64_t index = first_sequence_ + static_cast<int64_t>(sequence);
    FR_RETURN_IF_ERROR(corpus_->Read(index, skip, tokens.subspan(0, count)));
    tokens.remove_prefix(count);
    begin += static_cast<int64_t>(count);
    ++sequence;
  }
  return absl::OkStatus();
}

absl::Status GptDataset::CheckVocabulary(absl::Span<const int32_t> tokens) const {
  const int32_t largest = *std::max_element(tokens.begin(), tokens.end());
  if (largest < vocab_size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(corpus_->prefix(), ".bin has token ", largest,
                                                 ", outside the vocabulary of ", vocab_size(),
                                                 ": another tokenizer wrote it"));
}

}  // namespace forerun
