// SPDX-License-Identifier: Apache-2.0
#include "core/autograd/parameter_piece.h"

#include "core/tensor/host_tensor.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

// Ranks that split `rows` rows of three, of which the last `padding` are padding.
void ExpectEachElementOnce(int64_t rows, int64_t padding, int64_t ranks, int64_t shard) {
  std::vector<int> seen((rows - padding) * 3);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int64_t height = rows / ranks;
    const Parameter parameter(0, {.name = "table",
                                  .global_shape = {rows, 3},
                                  .box = {{rank * height, 0}, {height, 3}},
                                  .padding_rows = padding});
    for (int64_t begin = 0; begin < parameter.numel(); begin += shard) {
      const int64_t count = std::min(shard, parameter.numel() - begin);
      const auto piece = PieceOf(parameter, "name", begin, HostTensor({count}, DType::kF32));
      if (!piece.has_value()) continue;
      EXPECT_EQ(piece->name, "name");
      EXPECT_EQ(piece->global, Shape({rows - padding, 3}));
      EXPECT_LE(piece->begin + piece->values.numel(), piece->box.extent.numel());
      for (int64_t i = 0; i < piece->values.numel(); ++i) {
        ++seen[piece->box.offset[0] * 3 + piece->begin + i];
      }
    }
  }
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << rows << " " << padding << " " << ranks;
}

TEST(PieceOf, OverAllRanksAndShardsEachElementIsThereOnceAndPaddingNever) {
  for (const int64_t padding : {0, 1, 3, 4, 7, 8, 11}) {
    for (const int64_t ranks : {1, 2, 4}) {
      for (const int64_t shard : {1, 4, 7, 36}) ExpectEachElementOnce(12, padding, ranks, shard);
    }
  }
}

TEST(PieceOf, ATensorOfAllDimsAndAScalarAreWhole) {
  const Parameter scalar(0, {.name = "scalar"});
  const auto piece = PieceOf(scalar, "scalar", 0, HostTensor({1}, DType::kF32));
  ASSERT_TRUE(piece.has_value());
  EXPECT_EQ(piece->global, Shape());
  EXPECT_EQ(piece->values.numel(), 1);
}

}  // namespace
}  // namespace forerun
