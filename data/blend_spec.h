// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace forerun {

// What --data-path says: which corpora, and how much of the data each gives.
struct BlendSpec {
  std::vector<std::string> prefixes;
  std::vector<double> weights;  // one a prefix; none: each corpus in proportion to its size

  // Reads `PREFIX...` or `WEIGHT PREFIX WEIGHT PREFIX...`, as Megatron-LM does: the second where
  // every other word, the first among them, is a number. Weights are above 0; they need not sum
  // to 1.
  static absl::StatusOr<BlendSpec> Parse(absl::Span<const std::string> words);
};

}  // namespace forerun
