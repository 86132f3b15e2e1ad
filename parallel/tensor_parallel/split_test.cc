// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/split.h"

#include "gtest/gtest.h"

namespace forerun {
namespace {

TEST(CheckSplit, NamesWhatCannotBeSplitAndBothNumbers) {
  EXPECT_TRUE(CheckSplit("num_attention_heads", 8, 4).ok());
  EXPECT_TRUE(CheckSplit("num_attention_heads", 8, 1).ok());
  const absl::Status status = CheckSplit("num_attention_heads", 6, 4);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "num_attention_heads 6 is not divisible by tensor-parallel size 4");
}

}  // namespace
}  // namespace forerun
