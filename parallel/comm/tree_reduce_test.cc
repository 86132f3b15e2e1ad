// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/tree_reduce.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "parallel/comm/conformance_oracle.h"

namespace forerun::comm {
namespace {

TEST(TreeReduce, SumsAndMaximaOfARangeAreTheTreesBitForBit) {
  constexpr int64_t kNumel = 1100;  // more than two chunks
  constexpr int64_t kBegin = 13;
  for (int ranks = 1; ranks <= 9; ++ranks) {
    ForEachSummable([&](auto zero) {
      using T = decltype(zero);
      for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kMax}) {
        std::vector<Tensor> inputs;
        for (int rank = 0; rank < ranks; ++rank) {
          inputs.push_back(TensorOf(ValuesOf<T>(5, rank, kBegin + kNumel)));
        }
        const Tensor output = Zeros<T>(kNumel);
        TreeReduce(inputs, kBegin, op, output);
        ExpectValues(ReduceOracle<T>(5, ranks, kBegin, kNumel, op), output);
        const Tensor own = inputs[ranks / 2].Slice(0, kBegin, kBegin + kNumel);
        TreeReduce(inputs, kBegin, op, own);
        ExpectValues(ReduceOracle<T>(5, ranks, kBegin, kNumel, op), own);
      }
    });
  }
}

TEST(TreeReduce, TheOrderOfAdditionsShowsInTheBits) {
  int differences = 0;
  for (int64_t i = 0; i < 100; ++i) {
    float serial = ValueOf<float>(5, 0, i);
    for (int rank = 1; rank < 8; ++rank) serial += ValueOf<float>(5, rank, i);
    differences += serial != TreeOracle<float>(5, 0, 8, i, ReduceOp::kSum) ? 1 : 0;
  }
  EXPECT_GT(differences, 10);
}

TEST(TreeReduce, AMaximumWithANanIsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int where = 0; where < 3; ++where) {
    std::vector<Tensor> inputs;
    for (int rank = 0; rank < 3; ++rank) {
      inputs.push_back(TensorOf<float>({rank == where ? nan : 1.0f}));
    }
    const Tensor output = Zeros<float>(1);
    TreeReduce(inputs, 0, ReduceOp::kMax, output);
    EXPECT_TRUE(std::isnan(output.data<float>()[0])) << where;
  }
}

TEST(TreeReduce, IntegerSumsWrapAround) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const std::vector<Tensor> inputs = {TensorOf<int64_t>({most}), TensorOf<int64_t>({2})};
  const Tensor output = Zeros<int64_t>(1);
  TreeReduce(inputs, 0, ReduceOp::kSum, output);
  ExpectValues<int64_t>({std::numeric_limits<int64_t>::min() + 1}, output);
}

}  // namespace
}  // namespace forerun::comm
