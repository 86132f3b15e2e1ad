// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace forerun {

// The parts of a corpus, in the order of --split.
enum class SplitPart : uint8_t { kTrain, kValid, kTest };
constexpr int kSplitParts = 3;
absl::string_view NameOf(SplitPart part);  // "train", "valid", "test"

// Documents [begin, end) of a corpus.
struct DocumentRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const DocumentRange&) const = default;
};

// How much of a corpus each part gets: weights that sum to 1.
struct Split {
  std::array<double, kSplitParts> weights;

  // Reads "969,30,1": up to three numbers, at least one of them positive; those left out are 0.
  static absl::StatusOr<Split> Parse(absl::string_view text);

  // The documents of a part, as Megatron-LM cuts them: consecutive, each bound the sum of the
  // weights so far times `documents`, rounded to nearest even. Parts never overlap.
  DocumentRange Documents(SplitPart part, int64_t documents) const;
};

}  // namespace forerun
