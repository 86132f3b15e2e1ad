// SPDX-License-Identifier: Apache-2.0
#include "core/base/user_path.h"

#include <cstdlib>

#include "gtest/gtest.h"

namespace forerun {
namespace {

TEST(UserPath, RelativePathsMeanTheDirectoryAndOthersStay) {
  EXPECT_EQ(ResolvePath("/home/u", "data/x"), "/home/u/data/x");
  EXPECT_EQ(ResolvePath("/", "x"), "/x");
  EXPECT_EQ(ResolvePath("/home/u", "/data/x"), "/data/x");
  EXPECT_EQ(ResolvePath("/home/u", ""), "");
  EXPECT_EQ(ResolvePath("", "x"), "x");
}

TEST(UserPath, BazelRunTellsWhereTheUserIs) {
  ASSERT_EQ(setenv("BUILD_WORKING_DIRECTORY", "/somewhere", 1), 0);
  EXPECT_EQ(ResolveUserPath("x"), "/somewhere/x");
  ASSERT_EQ(unsetenv("BUILD_WORKING_DIRECTORY"), 0);
  EXPECT_EQ(ResolveUserPath("x"), "x");
}

}  // namespace
}  // namespace forerun
