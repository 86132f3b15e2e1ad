// SPDX-License-Identifier: Apache-2.0
#include "core/base/check.h"

#include "gtest/gtest.h"

namespace forerun {
namespace {

TEST(Check, AFailureNamesPlaceConditionBothSidesAndWhatWasStreamed) {
  const int two = 2;
  EXPECT_DEATH(FR_CHECK(two == 3) << "shape " << 7, "check_test.cc:.*: two == 3 shape 7");
  EXPECT_DEATH(FR_CHECK_EQ(two, 3) << "heads", "check_test.cc:.*: two == 3 .2 vs. 3. heads");
  EXPECT_DEATH(FR_CHECK_LT(two, 1), "two < 1 .2 vs. 1.");
}

TEST(Check, BytesPrintAsNumbers) {
  const unsigned char byte = 65;
  EXPECT_DEATH(FR_CHECK_EQ(byte, 66), "65 vs. 66");
}

TEST(Check, EachComparisonHoldsWhereItShould) {
  FR_CHECK(true) << "not evaluated";
  FR_CHECK_EQ(1, 1);
  FR_CHECK_NE(1, 2);
  FR_CHECK_LT(1, 2);
  FR_CHECK_LE(2, 2);
  FR_CHECK_GT(2, 1);
  FR_CHECK_GE(2, 2);
}

TEST(Check, APassingCheckEvaluatesItsSidesOnceAndItsMessageNever) {
  int sides = 0, messages = 0;
  FR_CHECK_EQ(++sides, 1) << ++messages;
  EXPECT_EQ(sides, 1);
  EXPECT_EQ(messages, 0);
}

TEST(Check, IsOneStatement) {
  bool other = false;
  if (false)
    FR_CHECK(true);
  else
    other = true;
  EXPECT_TRUE(other);
}

}  // namespace
}  // namespace forerun
