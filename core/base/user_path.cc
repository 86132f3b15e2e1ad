// SPDX-License-Identifier: Apache-2.0
#include "core/base/user_path.h"

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace forerun {

std::string ResolvePath(absl::string_view directory, absl::string_view path) {
  if (path.empty() || directory.empty() || path.front() == '/') return std::string(path);
  return absl::StrCat(directory, absl::EndsWith(directory, "/") ? "" : "/", path);
}

std::string ResolveUserPath(absl::string_view path) {
  const char* directory = std::getenv("BUILD_WORKING_DIRECTORY");
  return ResolvePath(directory == nullptr ? "" : directory, path);
}

}  // namespace forerun
