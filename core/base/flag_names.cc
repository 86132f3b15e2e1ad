// SPDX-License-Identifier: Apache-2.0
#include "core/base/flag_names.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace forerun {

std::vector<std::string> NormalizeFlagNames(absl::Span<const std::string> arguments) {
  std::vector<std::string> result(arguments.begin(), arguments.end());
  for (std::string& argument : result) {
    if (argument == "--") break;
    if (!absl::StartsWith(argument, "--")) continue;
    const auto name_end = std::find(argument.begin(), argument.end(), '=');
    std::replace(argument.begin(), name_end, '_', '-');
  }
  return result;
}

}  // namespace forerun
