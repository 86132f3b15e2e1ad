// SPDX-License-Identifier: Apache-2.0
#include "tests/support/program.h"

#include <sys/wait.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "core/base/output_file.h"
#include "gtest/gtest.h"

namespace forerun {

ProgramResult RunProgram(absl::string_view path, absl::string_view flags) {
  const std::string err = absl::StrCat(testing::TempDir(), "/stderr.txt");
  const std::string command = absl::StrCat("BUILD_WORKING_DIRECTORY='", testing::TempDir(), "' ",
                                           path, " ", flags, " 2>'", err, "'");
  ProgramResult result;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    ADD_FAILURE() << "cannot run " << command;
    return result;
  }
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) result.out.push_back(static_cast<char>(c));
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  const absl::StatusOr<std::string> said = ReadFile(err);
  if (said.ok()) result.err = *said;
  return result;
}

}  // namespace forerun
