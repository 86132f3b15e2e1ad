// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/fake/fake_group.h"

#include <string>

#include "core/device/device.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "gtest/gtest.h"

namespace forerun::comm {
namespace {

Tensor Meta(int64_t numel, DType dtype) {
  return Tensor::Wrap(nullptr, nullptr, Shape{numel}, dtype, Device{DeviceKind::kMeta});
}

std::string ErrorOf(const Work& work) {
  try {
    work.Synchronize();
    return "";
  } catch (const GroupError& error) {
    return error.what();
  }
}

TEST(FakeGroup, AnyRankOfAnyGroupStandsAlone) {
  FakeGroupFactory factory(6, 8);
  const auto group = factory.Create("tp", {4, 6});
  const auto other = factory.Create("pp", {6, 7, 1});
  EXPECT_EQ(group->rank(), 1);
  EXPECT_EQ(group->size(), 2);
  EXPECT_EQ(other->rank(), 0);
  EXPECT_TRUE(group->AllGather(Meta(3, DType::kBF16), Meta(6, DType::kBF16)).Done());
  EXPECT_TRUE(other->Send(Meta(5, DType::kF32), 2).Done());
  EXPECT_TRUE(other->Broadcast(Meta(7, DType::kU8), 1).Done());
  EXPECT_TRUE(group->Barrier().Done());
}

TEST(FakeGroup, AnOperationMayEndWhenItIsWaitedFor) {
  const auto group = FakeGroupFactory(0, 2, FakeEnd::kWhenWaited).Create("dp", {0, 1});
  InlineStream stream(Device{DeviceKind::kMeta});
  const Work first = group->Barrier(), second = group->AllReduce(Meta(4, DType::kF32), {});
  int ended = 0;
  second.OnDone([&](const absl::Status& status) { ended += status.ok() ? 1 : 0; });
  EXPECT_FALSE(first.Done() || second.Done());
  second.Wait(stream);
  EXPECT_EQ(ended, 1);
  EXPECT_TRUE(second.Done());
  EXPECT_FALSE(first.Done());
}

TEST(FakeGroup, OperationsOfAnAbortedGroupFailWithTheFirstError) {
  for (FakeEnd end : {FakeEnd::kAtOnce, FakeEnd::kWhenWaited}) {
    const auto group = FakeGroupFactory(0, 2, end).Create("dp", {0, 1});
    EXPECT_EQ(ErrorOf(group->Barrier()), "");
    group->Abort(absl::AbortedError("first"));
    group->Abort(absl::AbortedError("second"));
    EXPECT_EQ(ErrorOf(group->Barrier()), "first");
  }
}

}  // namespace
}  // namespace forerun::comm
