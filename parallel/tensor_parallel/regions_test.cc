// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/regions.h"

#include <vector>

#include "core/autograd/functions.h"
#include "core/autograd/testing/map_sink.h"
#include "core/autograd/testing/test_device.h"
#include "core/nn/testing/plain_reader.h"
#include "gtest/gtest.h"
#include "parallel/tensor_parallel/testing/layer_case.h"
#include "parallel/tensor_parallel/testing/rank_threads.h"

namespace forerun {
namespace {

// Every rank adds the same, so n ranks in a region stand for n times the value: what one rank gets
// is undone by the number of ranks.
TEST(Regions, ForwardAndBackwardOfBothBordersSumOnce) {
  ExpectEqualsOneRank({.build =
                           [](ParameterRegistry&, comm::ProcessGroup& group) {
                             return [&group](const ForwardContext& context, const Value& x) {
                               Value inside = Swiglu(context, CopyToRegion(context, x, group));
                               inside = ScaledMean(context, inside,
                                                   1.0f / static_cast<float>(group.size()));
                               return ReduceFromRegion(context, inside, group);
                             };
                           },
                       .input = {2, 3, 4}});
}

// Add hands the gradient that comes to it on to both its inputs: to sum it in place at the border
// would change the other's.
TEST(Regions, BackwardLeavesTheIncomingGradientAlone) {
  constexpr int kRanks = 2;
  ForEachRank(kRanks, [](comm::ProcessGroup& group) {
    const TestDevice device(DeviceKind::kCpu);
    const ParameterRegistry registry;
    PlainReader reader(device.op(), registry, 0);
    MapSink sink(device.op());
    Tape tape;
    const ForwardContext context{.op = device.op(), .reader = reader, .tape = &tape};
    const Value x = tape.Leaf(device.Normal("x", {2, 3}, DType::kF32));
    const Value y = Add(context, CopyToRegion(context, x, group), x);
    const Tensor dy = device.Normal("dy", {2, 3}, DType::kF32);
    const std::vector<double> before = ValuesOf(dy);
    tape.Backward(device.op(), y, dy, sink);
    EXPECT_EQ(ValuesOf(dy), before);
    const std::vector<double> dx = ValuesOf(tape.LeafGradient(x));
    for (int i = 0; i < 6; ++i) {
      EXPECT_FLOAT_EQ(dx[i], (kRanks + 1) * before[i]);
    }
  });
}

}  // namespace
}  // namespace forerun
