// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/random/random.h"
#include "data/dataset.h"

namespace forerun {

// Another data set, with the samples of each epoch in an order drawn anew (--dataloader-type
// cyclic): sample i of epoch e is the other's sample
//   e * size() + PermutationAt(Root(seed).Fold("cyclic").Fold(e), size(), i).
class CyclicDataset final : public Dataset {
 public:
  CyclicDataset(std::shared_ptr<const Dataset> dataset, uint64_t seed);

  int64_t size() const override { return dataset_->size(); }
  int64_t seq_length() const override { return dataset_->seq_length(); }
  int64_t vocab_size() const override { return dataset_->vocab_size(); }
  absl::Status Get(int64_t sample, absl::Span<int32_t> tokens) const override;

 private:
  const std::shared_ptr<const Dataset> dataset_;
  const RandomKey key_;
};

}  // namespace forerun
