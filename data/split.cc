// SPDX-License-Identifier: Apache-2.0
#include "data/split.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace forerun {

absl::string_view NameOf(SplitPart part) {
  constexpr absl::string_view kNames[] = {"train", "valid", "test"};
  return kNames[static_cast<int>(part)];
}

absl::StatusOr<Split> Split::Parse(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ',');
  if (words.size() > kSplitParts) {
    return absl::InvalidArgumentError(absl::StrCat("--split ", text, " has ", words.size(),
                                                   " numbers; there are train, valid and test"));
  }
  Split split{};
  double sum = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    double& weight = split.weights[i];
    if (!absl::SimpleAtod(words[i], &weight) || !std::isfinite(weight) || weight < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("--split ", text, ": '", words[i], "' is not a number of 0 or more"));
    }
    sum += weight;
  }
  if (sum <= 0) return absl::InvalidArgumentError(absl::StrCat("--split ", text, " is all zero"));
  for (double& weight : split.weights) weight /= sum;
  return split;
}

DocumentRange Split::Documents(SplitPart part, int64_t documents) const {
  double before = 0;
  for (int i = 0; i < static_cast<int>(part); ++i) before += weights[i];
  const double after = before + weights[static_cast<int>(part)];
  const auto bound = [documents](double share) {
    return std::min(documents,
                    static_cast<int64_t>(std::nearbyint(share * static_cast<double>(documents))));
  };
  return {bound(before), bound(after)};
}

}  // namespace forerun
