// SPDX-License-Identifier: Apache-2.0
#include "data/blend_spec.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace forerun {
namespace {

// Of the words 0, 2, 4, ...
size_t CountNumbers(absl::Span<const std::string> words) {
  size_t numbers = 0;
  double unused;
  for (size_t i = 0; i < words.size(); i += 2) numbers += absl::SimpleAtod(words[i], &unused);
  return numbers;
}

}  // namespace

absl::StatusOr<BlendSpec> BlendSpec::Parse(absl::Span<const std::string> words) {
  if (words.size() % 2 != 0 || CountNumbers(words) == 0) {
    return BlendSpec{{words.begin(), words.end()}, {}};
  }
  BlendSpec spec;
  for (size_t i = 0; i < words.size(); i += 2) {
    double weight = 0.0;
    if (!absl::SimpleAtod(words[i], &weight) || !std::isfinite(weight) || weight <= 0.0) {
      return absl::InvalidArgumentError(absl::StrCat("--data-path: the weight '", words[i], "' of ",
                                                     words[i + 1], " is not a number above 0"));
    }
    spec.weights.push_back(weight);
    spec.prefixes.push_back(words[i + 1]);
  }
  return spec;
}

}  // namespace forerun
