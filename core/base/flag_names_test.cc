// SPDX-License-Identifier: Apache-2.0
#include "core/base/flag_names.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::ElementsAre;

TEST(FlagNames, UnderscoresInNamesBecomeDashesAndValuesStay) {
  EXPECT_THAT(NormalizeFlagNames({"--micro_batch_size=4", "--data-path", "my_data", "--x=a_b=c_d"}),
              ElementsAre("--micro-batch-size=4", "--data-path", "my_data", "--x=a_b=c_d"));
}

TEST(FlagNames, ShortFlagsPositionalsAndWhatFollowsTheSeparatorStay) {
  EXPECT_THAT(NormalizeFlagNames({"-a_b", "in_put", "--", "--not_a_flag"}),
              ElementsAre("-a_b", "in_put", "--", "--not_a_flag"));
  EXPECT_THAT(NormalizeFlagNames({}), ElementsAre());
}

}  // namespace
}  // namespace forerun
