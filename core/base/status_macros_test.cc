// SPDX-License-Identifier: Apache-2.0
#include "core/base/status_macros.h"

#include <memory>

#include "gtest/gtest.h"

namespace forerun {
namespace {

absl::Status Fails() { return absl::NotFoundError("no such file"); }

absl::Status Passes(absl::Status first, bool* reached) {
  FR_RETURN_IF_ERROR(first);
  *reached = true;
  return absl::OkStatus();
}

absl::StatusOr<int> Doubled(absl::StatusOr<std::unique_ptr<int>> number) {
  FR_ASSIGN_OR_RETURN(const std::unique_ptr<int> value, std::move(number));
  FR_ASSIGN_OR_RETURN(int twice, absl::StatusOr<int>(2 * *value));
  return twice;
}

TEST(StatusMacros, ReturnIfErrorPassesOnTheErrorAndStops) {
  bool reached = false;
  EXPECT_EQ(Passes(Fails(), &reached), Fails());
  EXPECT_FALSE(reached);
  EXPECT_TRUE(Passes(absl::OkStatus(), &reached).ok());
  EXPECT_TRUE(reached);
}

TEST(StatusMacros, AssignOrReturnMovesTheValueOutOrPassesOnTheError) {
  EXPECT_EQ(*Doubled(std::make_unique<int>(21)), 42);
  EXPECT_EQ(Doubled(Fails()).status(), Fails());
}

}  // namespace
}  // namespace forerun
