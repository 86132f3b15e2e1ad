// SPDX-License-Identifier: Apache-2.0
#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace forerun::internal {

CheckFailure::CheckFailure(const char* file, int line, absl::string_view condition) {
  stream_ << file << ':' << line << ": check failed: " << condition;
}

CheckFailure::~CheckFailure() {
  std::fprintf(stderr, "%s\n", stream_.str().c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace forerun::internal
