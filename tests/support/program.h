// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace forerun {

struct ProgramResult {
  int exit_code = 0;  // 128 + the signal where one ended it
  std::string out;
  std::string err;
};

// Runs a program among the test's runfiles as a user does, from the test's own folder: `flags` are
// read by a shell, and relative paths in them mean testing::TempDir(). One at a time.
ProgramResult RunProgram(absl::string_view path, absl::string_view flags);

}  // namespace forerun
