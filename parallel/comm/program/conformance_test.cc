// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/conformance.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "parallel/comm/local/run_ranks.h"
#include "parallel/comm/program/recording_group.h"

namespace forerun::comm {
namespace {

ConformanceCase Case(int size) {
  return {absl::StrCat("Ranks", size), size,
          [=](std::chrono::milliseconds deadline, const ConformanceCase::RankBody& body) {
            RunRanksOptions options;
            options.hub.deadline = deadline;
            return RunRanks(size, options, [&](GroupFactory& local) {
              RecordingGroupFactory factory(local);
              return body(factory);
            });
          }};
}

INSTANTIATE_TEST_SUITE_P(RecordingOverLocal, Conformance, testing::Values(Case(1), Case(3)),
                         CaseName);

}  // namespace
}  // namespace forerun::comm
