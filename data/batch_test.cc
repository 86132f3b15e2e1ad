// SPDX-License-Identifier: Apache-2.0
#include "data/batch.h"

#include <vector>

#include "core/tensor/shape.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

// Token t of sample i is 100 i + t; sample 9 cannot be read.
class Numbered final : public Dataset {
 public:
  int64_t size() const override { return 10; }
  int64_t seq_length() const override { return 3; }
  int64_t vocab_size() const override { return 1000; }
  absl::Status Get(int64_t sample, absl::Span<int32_t> tokens) const override {
    if (sample == 9) return absl::DataLossError("sample 9 is bad");
    for (size_t t = 0; t < tokens.size(); ++t) {
      tokens[t] = static_cast<int32_t>(100 * sample + static_cast<int64_t>(t));
    }
    return absl::OkStatus();
  }
};

TEST(Batch, IsSequenceFirstWithTargetsOneTokenOn) {
  const auto batch = MakeTokenBatch(Numbered(), {4, 2});
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->tokens.shape(), (Shape{3, 2}));
  EXPECT_EQ(batch->targets.shape(), (Shape{3, 2}));
  const int32_t* tokens = batch->tokens.data<int32_t>();
  const int32_t* targets = batch->targets.data<int32_t>();
  EXPECT_EQ(std::vector<int32_t>(tokens, tokens + 6),
            (std::vector<int32_t>{400, 200, 401, 201, 402, 202}));
  EXPECT_EQ(std::vector<int32_t>(targets, targets + 6),
            (std::vector<int32_t>{401, 201, 402, 202, 403, 203}));
}

TEST(Batch, PassesOnWhatTheDatasetSays) {
  EXPECT_EQ(MakeTokenBatch(Numbered(), {1, 9}).status().message(), "sample 9 is bad");
}

}  // namespace
}  // namespace forerun
