// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/conformance.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "parallel/comm/local/run_ranks.h"

namespace forerun::comm {
namespace {

ConformanceCase Case(const char* name, int size, int64_t inline_bytes) {
  return {absl::StrCat(name, size), size,
          [=](std::chrono::milliseconds deadline, const ConformanceCase::RankBody& body) {
            RunRanksOptions options;
            options.hub.deadline = deadline;
            options.hub.inline_bytes = inline_bytes;
            return RunRanks(size, options, body);
          }};
}

// Data moved at once by the rank that arrives last, by progress threads, and some of each.
std::vector<ConformanceCase> Cases() {
  std::vector<ConformanceCase> cases;
  for (int size = 1; size <= 8; ++size) {
    cases.push_back(Case("Inline", size, std::numeric_limits<int64_t>::max()));
    cases.push_back(Case("Progress", size, 0));
  }
  for (int size : {3, 8}) cases.push_back(Case("Mixed", size, 4096));
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Local, Conformance, testing::ValuesIn(Cases()), CaseName);

}  // namespace
}  // namespace forerun::comm
