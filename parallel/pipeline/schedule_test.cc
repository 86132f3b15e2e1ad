// SPDX-License-Identifier: Apache-2.0
#include "parallel/pipeline/schedule.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace forerun::pipeline {
namespace {

std::string Text(const ActionList& actions) {
  return absl::StrJoin(
      actions, " ", [](std::string* out, const Action& action) { out->append(ToString(action)); });
}

void ExpectEachOnce(const Schedule& schedule, int stages, int microbatches) {
  EXPECT_EQ(schedule.microbatches, microbatches);
  ASSERT_EQ(schedule.stages.size(), static_cast<size_t>(stages));
  for (const ActionList& list : schedule.stages) {
    EXPECT_EQ(list.size(), static_cast<size_t>(microbatches * (schedule.backward ? 2 : 1)));
    for (int m = 0; m < microbatches; ++m) {
      EXPECT_EQ(std::count(list.begin(), list.end(), Action{ActionKind::kForward, m}), 1);
      EXPECT_EQ(std::count(list.begin(), list.end(), Action{ActionKind::kBackward, m}),
                schedule.backward ? 1 : 0);
    }
  }
}

TEST(Schedule, EveryStageRunsEveryMicrobatchOnceEachWay) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 8; ++m) {
      SCOPED_TRACE(testing::Message() << "p " << p << " m " << m);
      ExpectEachOnce(GPipe(p, m), p, m);
      ExpectEachOnce(OneFOneB(p, m), p, m);
      ExpectEachOnce(ForwardOnly(p, m), p, m);
    }
  }
}

TEST(Schedule, OneFOneBWarmsUpByTheDistanceToTheLastStage) {
  const Schedule schedule = OneFOneB(3, 4);
  EXPECT_EQ(Text(schedule.stages[0]), "F0 F1 F2 B0 F3 B1 B2 B3");
  EXPECT_EQ(Text(schedule.stages[1]), "F0 F1 B0 F2 B1 F3 B2 B3");
  EXPECT_EQ(Text(schedule.stages[2]), "F0 B0 F1 B1 F2 B2 F3 B3");
}

TEST(Schedule, OneFOneBOfFewMicrobatchesWarmsUpWithAllOfThem) {
  EXPECT_EQ(Text(OneFOneB(4, 2).stages[0]), "F0 F1 B0 B1");
}

TEST(Schedule, GPipeRunsAllForwardPassesFirst) {
  EXPECT_EQ(Text(GPipe(2, 3).stages[1]), "F0 F1 F2 B0 B1 B2");
}

TEST(Schedule, AnActionPrintsItsKindMicrobatchAndChunk) {
  EXPECT_EQ(Text({{ActionKind::kForward, 3},
                  {ActionKind::kBackward, 12, 1},
                  {ActionKind::kBackwardInput, 0},
                  {ActionKind::kBackwardWeight, 2, 2}}),
            "F3 B12.1 I0 W2.2");
}

TEST(Schedule, NamesFindTheirSchedules) {
  EXPECT_EQ(ScheduleByName("gpipe", 3, 4)->stages, GPipe(3, 4).stages);
  EXPECT_EQ(ScheduleByName("1f1b", 3, 4)->stages, OneFOneB(3, 4).stages);
}

TEST(Schedule, AnUnknownNameIsAnsweredWithTheNamesThereAre) {
  EXPECT_EQ(ScheduleByName("dualpipe", 2, 2).status().message(),
            "pipeline schedule dualpipe is not known; choose gpipe or 1f1b");
}

}  // namespace
}  // namespace forerun::pipeline
