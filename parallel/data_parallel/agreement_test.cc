// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/agreement.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "parallel/data_parallel/testing/rank_job.h"

namespace forerun {
namespace {

// What each rank is told where rank r holds texts[r].
std::vector<absl::Status> Check(const std::vector<std::string>& texts) {
  std::vector<absl::Status> told(texts.size());
  RankJob job(static_cast<int>(texts.size()));
  const absl::Status status = job.Run([&](const RankContext& rank) {
    told[rank.rank] = CheckAgreement(rank.op, rank.group, "bucket plan", texts[rank.rank]);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return told;
}

void ExpectAllTold(const std::vector<std::string>& texts, const std::string& message) {
  for (const absl::Status& status : Check(texts)) {
    EXPECT_EQ(status, absl::FailedPreconditionError(message));
  }
}

TEST(Agreement, EqualTextsAgree) {
  for (int ranks = 1; ranks <= 4; ++ranks) {
    for (const char* text : {"", "one line", "bucket 0\nbucket 1\n"}) {
      for (const absl::Status& status : Check(std::vector<std::string>(ranks, text))) {
        EXPECT_TRUE(status.ok()) << status;
      }
    }
  }
}

TEST(Agreement, AllRanksAreToldTheFirstDifferenceAndWhoHasIt) {
  ExpectAllTold({"a\nb\nc\n", "a\nb\nc\n", "a\nB\nC\n", "x\n"},
                "ranks of group dp differ in their bucket plan: rank 0 has \"b\" where rank 2 has "
                "\"B\"");
}

TEST(Agreement, ALineThatOneRankDoesNotHaveIsNothing) {
  ExpectAllTold({"a\nb\n", "a\n"},
                "ranks of group dp differ in their bucket plan: rank 0 has \"b\" where rank 1 has "
                "nothing");
  ExpectAllTold({"", "a"},
                "ranks of group dp differ in their bucket plan: rank 0 has nothing where rank 1 "
                "has \"a\"");
}

TEST(Agreement, AnEmptyLineIsNotNothing) {
  ExpectAllTold({"a\n\nb", "a\nb"},
                "ranks of group dp differ in their bucket plan: rank 0 has an empty line where "
                "rank 1 has \"b\"");
  ExpectAllTold({"a\n\n", "a\n"},
                "ranks of group dp differ in their bucket plan: rank 0 has an empty line where "
                "rank 1 has nothing");
}

TEST(TakeLargest, EveryRankHoldsTheLargestOfEachValue) {
  const absl::Status status = RankJob(3).Run([](const RankContext& rank) {
    double values[] = {1.0 * rank.rank, -1.0 * rank.rank, 5.0};
    TakeLargest(rank.op, rank.group, values);
    EXPECT_THAT(values, testing::ElementsAre(2.0, 0.0, 5.0));
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(Agreement, LongTextsOfManyLengthsAreComparedInFull) {
  const std::string common(100000, 'x');
  ExpectAllTold({common + "\nleft", common + "\nright" + common},
                "ranks of group dp differ in their bucket plan: rank 0 has \"left\" where rank 1 "
                "has \"right" +
                    common + "\"");
}

TEST(AgreeOnStatus, AllRanksGetTheErrorOfTheFirstThatHasOne) {
  for (const std::vector<int>& failing :
       std::vector<std::vector<int>>{{}, {2}, {1, 2}, {0, 1, 2}}) {
    const absl::Status status = RankJob(3).Run([&](const RankContext& rank) {
      const bool fails = std::count(failing.begin(), failing.end(), rank.rank) > 0;
      const absl::Status agreed = AgreeOnStatus(
          rank.group, fails ? absl::DataLossError(std::string(rank.rank, 'x')) : absl::OkStatus());
      EXPECT_EQ(agreed, failing.empty() ? absl::OkStatus()
                                        : absl::DataLossError(std::string(failing[0], 'x')));
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  }
}

}  // namespace
}  // namespace forerun
