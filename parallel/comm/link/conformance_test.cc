// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/conformance.h"

#include <chrono>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "parallel/comm/conformance_oracle.h"
#include "parallel/comm/link/link_group.h"
#include "parallel/comm/link/wall_clock.h"
#include "parallel/comm/local/run_ranks.h"

namespace forerun::comm {
namespace {

// Every rank has one link for all its groups.
absl::Status RunOverLinks(int size, const Link::Options& link, const RunRanksOptions& options,
                          const ConformanceCase::RankBody& body) {
  WallClock clock;
  return RunRanks(size, options, [&](GroupFactory& local) {
    LinkGroupFactory factory(local, std::make_shared<Link>(link, clock));
    return body(factory);
  });
}

ConformanceCase Case(int size, int64_t inline_bytes) {
  return {absl::StrCat(inline_bytes == 0 ? "Progress" : "Inline", size), size,
          [=](std::chrono::milliseconds deadline, const ConformanceCase::RankBody& body) {
            RunRanksOptions options;
            options.hub.deadline = deadline;
            options.hub.inline_bytes = inline_bytes;
            return RunOverLinks(size, {std::chrono::microseconds(5), 10e9}, options, body);
          }};
}

std::vector<ConformanceCase> Cases() {
  std::vector<ConformanceCase> cases;
  for (int size : {1, 2, 3, 5, 8}) {
    cases.push_back(Case(size, 1 << 30));
    cases.push_back(Case(size, 0));
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(LinkOverLocal, Conformance, testing::ValuesIn(Cases()), CaseName);

TEST(LinkOverLocal, OperationsTakeNoLessThanTheirTime) {
  const Link::Options options{std::chrono::microseconds(500), 1e8};
  constexpr int64_t kPart = 10000;  // floats; two ranks send one part each: 400 us
  WallClock clock;
  const absl::Status status = RunRanks(2, {}, [&](GroupFactory& local) {
    const auto link = std::make_shared<Link>(options, clock);
    const auto group = LinkGroupFactory(local, link).Create("dp", {0, 1});
    const Clock::Time begin = clock.Now();
    std::vector<Work> works;
    for (int i = 0; i < 4; ++i) {
      works.push_back(group->AllGather(Zeros<float>(kPart), Zeros<float>(2 * kPart)));
    }
    for (int i = 0; i < 4; ++i) {
      works[i].Synchronize();
      EXPECT_GE(clock.Now() - begin, (i + 1) * std::chrono::microseconds(900));
    }
    for (const LinkRecord& record : link->TakeRecords()) {
      EXPECT_EQ(record.bytes, kPart * 4);
      EXPECT_GE(record.started, record.issued);
      EXPECT_GE(record.ended, record.started + std::chrono::microseconds(900));
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace forerun::comm
