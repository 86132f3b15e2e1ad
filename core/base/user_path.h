// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace forerun {

// A path that a user typed, as this process must open it: a relative one means the directory where
// the user typed it. Under `bazel run` that is $BUILD_WORKING_DIRECTORY, since the process itself
// starts among its runfiles. Absolute and empty paths stay as they are.
std::string ResolveUserPath(absl::string_view path);

// The same for a given directory; an empty one leaves `path` as it is.
std::string ResolvePath(absl::string_view directory, absl::string_view path);

}  // namespace forerun
