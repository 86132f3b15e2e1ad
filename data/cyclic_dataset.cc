// SPDX-License-Identifier: Apache-2.0
#include "data/cyclic_dataset.h"

#include <utility>

#include "core/base/check.h"

namespace forerun {

CyclicDataset::CyclicDataset(std::shared_ptr<const Dataset> dataset, uint64_t seed)
    : dataset_(std::move(dataset)), key_(RandomKey::Root(seed).Fold("cyclic")) {}

absl::Status CyclicDataset::Get(int64_t sample, absl::Span<int32_t> tokens) const {
  FR_CHECK_GE(sample, 0);
  const uint64_t size = static_cast<uint64_t>(dataset_->size());
  const uint64_t epoch = static_cast<uint64_t>(sample) / size;
  const uint64_t drawn =
      PermutationAt(key_.Fold(epoch), size, static_cast<uint64_t>(sample) % size);
  return dataset_->Get(static_cast<int64_t>(epoch * size + drawn), tokens);
}

}  // namespace forerun
