// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"

namespace forerun {

// Command-line arguments with one spelling of flag names, that with dashes: "--micro_batch_size=4"
// becomes "--micro-batch-size=4". Only names of long flags change: not what follows '=', not an
// argument that does not start with "--", and nothing after a lone "--".
std::vector<std::string> NormalizeFlagNames(absl::Span<const std::string> arguments);

}  // namespace forerun
