// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/fake/fake_group.h"

#include <memory>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "gtest/gtest.h"

namespace forerun::comm {
namespace {

Tensor Meta(int64_t numel, DType dtype) {
  return Tensor::Wrap(nullptr, nullptr, Shape{numel}, dtype, Device{DeviceKind::kMeta});
}

TEST(FakeGroup, WritesDownWhatWasIssuedInOrder) {
  std::vector<FakeOp> log;
  FakeGroupFactory factory(6, 8, &log);
  const auto group = factory.Create("tp", {4, 6});
  const auto other = factory.Create("pp", {6, 7, 1});
  EXPECT_EQ(group->rank(), 1);
  EXPECT_EQ(group->size(), 2);
  EXPECT_EQ(other->rank(), 0);
  EXPECT_TRUE(group->AllGather(Meta(3, DType::kBF16), Meta(6, DType::kBF16)).Done());
  EXPECT_TRUE(other->Send(Meta(5, DType::kF32), 2).Done());
  EXPECT_TRUE(
      group->ReduceScatter(Meta(8, DType::kF64), Meta(4, DType::kF64), ReduceOp::kSum).Done());
  EXPECT_TRUE(other->Broadcast(Meta(7, DType::kU8), 1).Done());
  EXPECT_TRUE(group->Barrier().Done());

  struct Expected {
    const char* group;
    OpKind kind;
    int peer;
    int64_t bytes;
  };
  const Expected expected[] = {{"tp", OpKind::kAllGather, -1, 12},
                               {"pp", OpKind::kSend, 2, 20},
                               {"tp", OpKind::kReduceScatter, -1, 64},
                               {"pp", OpKind::kBroadcast, 1, 7},
                               {"tp", OpKind::kBarrier, -1, 0}};
  ASSERT_EQ(log.size(), std::size(expected));
  for (size_t i = 0; i < log.size(); ++i) {
    EXPECT_EQ(log[i].group, expected[i].group) << i;
    EXPECT_EQ(log[i].kind, expected[i].kind) << i;
    EXPECT_EQ(log[i].peer, expected[i].peer) << i;
    EXPECT_EQ(log[i].bytes, expected[i].bytes) << i;
  }
}

TEST(FakeGroup, OperationsOfAnAbortedGroupFailWithTheFirstError) {
  std::vector<FakeOp> log;
  const auto group = FakeGroupFactory(0, 2, &log).Create("dp", {0, 1});
  group->Barrier().Synchronize();
  group->Abort(absl::AbortedError("first"));
  group->Abort(absl::AbortedError("second"));
  try {
    group->Barrier().Synchronize();
    FAIL() << "no error";
  } catch (const GroupError& error) {
    EXPECT_STREQ(error.what(), "first");
  }
}

}  // namespace
}  // namespace forerun::comm
