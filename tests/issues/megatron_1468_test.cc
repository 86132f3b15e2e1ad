// SPDX-License-Identifier: Apache-2.0
// Megatron-LM 1468, 827: all flags on, and no overlap happens, silently. The kind of fault: a
// message that could run under compute and does not, and a report that does not show it. A link of
// 20 ms and 20 ms of compute a layer, in virtual time; //bench:param_sync times two real ranks.
#include <chrono>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/virtual_rank.h"
#include "trainer/overlap_report.h"

namespace forerun {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr int kLayers = 8;

struct Step {
  VirtualRank::Time time{0};
  std::vector<std::string> report;  // lines: a head, one a bucket, the sum
};

// The second of two steps.
Step SecondStep(bool overlap) {
  VirtualRank rank({.messages = std::vector<VirtualRank::Time>(kLayers, milliseconds(20)),
                    .forward = milliseconds(20),
                    .backward = milliseconds(20),
                    .overlap = overlap});
  const auto run = [&rank] {
    rank.Forward();
    rank.Backward();
    rank.WaitForReductions();
    return rank.Update();
  };
  const VirtualRank::Time begin = run();
  rank.model().gate().log().ResetRecords();
  rank.model().reducer().log().ResetRecords();
  const VirtualRank::Time end = run();
  const BucketPlan& plan = rank.model().plan();
  const Costs costs = Costs::Nominal();
  const ForwardTimeline timeline{std::vector<double>(plan.parameters().size(), 0.0), 0.0};
  const std::string report =
      OverlapReport({plan, costs, Predict(plan, timeline, costs),
                     rank.model().gate().log().records(), rank.model().reducer().log().records(),
                     /*steps=*/1});
  return {end - begin, absl::StrSplit(report, '\n')};
}

TEST(Megatron1468, OverlapHidesAllButTheEndsOfTheChains) {
  const Step overlapped = SecondStep(true);
  const Step blocking = SecondStep(false);
  EXPECT_EQ(overlapped.time, 2 * kLayers * milliseconds(20) + 2 * milliseconds(20));
  EXPECT_EQ(blocking.time, 4 * kLayers * milliseconds(20));
  EXPECT_LT(overlapped.time, blocking.time * 3 / 4);
}

TEST(Megatron1468, TheReportShowsTheExposedTimeOfEachBucketAndTheirSum) {
  const Step overlapped = SecondStep(true);
  const Step blocking = SecondStep(false);
  for (int bucket = 0; bucket < kLayers; ++bucket) {
    EXPECT_THAT(blocking.report[1 + bucket], HasSubstr("20.000")) << bucket;
  }
  EXPECT_THAT(blocking.report[1 + kLayers], HasSubstr("160.000"));
  EXPECT_THAT(overlapped.report[1], HasSubstr("20.000"));
  EXPECT_THAT(overlapped.report[1 + kLayers], HasSubstr(" 20.000"));
}

}  // namespace
}  // namespace forerun
