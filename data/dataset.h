// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace forerun {

// Training samples of one length. Immutable: any thread may call. A sample is a pure function of
// the data set's construction (its seed among it) and the sample's index, so nothing about the
// data but the number of samples consumed is ever saved.
class Dataset {
 public:
  virtual ~Dataset() = default;
  // Samples of one epoch, at least 1. Indices go on beyond: sample size() is the first of epoch 1.
  virtual int64_t size() const = 0;
  virtual int64_t seq_length() const = 0;
  virtual int64_t vocab_size() const = 0;

  // Fills `tokens`, seq_length() + 1 of them: the inputs are all but the last, the targets all but
  // the first. Ids lie in [0, vocab_size()). sample >= 0. Fails where the data are faulty.
  virtual absl::Status Get(int64_t sample, absl::Span<int32_t> tokens) const = 0;
};

}  // namespace forerun
