// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/program/recording_group.h"

#include <vector>

#include "core/device/device.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "gtest/gtest.h"
#include "parallel/comm/fake/fake_group.h"

namespace forerun::comm {
namespace {

Tensor Meta(int64_t numel, DType dtype) {
  return Tensor::Wrap(nullptr, nullptr, Shape{numel}, dtype, Device{DeviceKind::kMeta});
}

TEST(RecordingGroup, WritesDownWhatWasIssuedByGroupAndInOrder) {
  FakeGroupFactory fake(6, 8);
  RecordingGroupFactory factory(fake);
  const auto tp = factory.Create("tp", {4, 6});
  const auto pp = factory.Create("pp", {6, 7, 1});
  EXPECT_TRUE(tp->AllGather(Meta(3, DType::kBF16), Meta(6, DType::kBF16)).Done());
  EXPECT_TRUE(pp->Send(Meta(5, DType::kF32), 2).Done());
  EXPECT_TRUE(tp->ReduceScatter(Meta(8, DType::kF64), Meta(4, DType::kF64), ReduceOp::kMax).Done());
  EXPECT_TRUE(pp->Broadcast(Meta(7, DType::kU8), 1).Done());
  EXPECT_TRUE(tp->Barrier().Done());
  EXPECT_TRUE(tp->AllReduce(Meta(9, DType::kI64), ReduceOp::kSum).Done());
  EXPECT_TRUE(pp->Recv(Meta(2, DType::kF32), 0).Done());

  const Program program = factory.program();
  const std::vector<GroupIdentity> groups = {{"tp", {4, 6}}, {"pp", {6, 7, 1}}};
  EXPECT_EQ(program.groups, groups);
  const std::vector<std::vector<Operation>> operations = {
      {{OpKind::kAllGather, ReduceOp::kSum, -1, 6, DType::kBF16},
       {OpKind::kReduceScatter, ReduceOp::kMax, -1, 8, DType::kF64},
       {OpKind::kBarrier},
       {OpKind::kAllReduce, ReduceOp::kSum, -1, 9, DType::kI64}},
      {{OpKind::kSend, ReduceOp::kSum, 2, 5, DType::kF32},
       {OpKind::kBroadcast, ReduceOp::kSum, 1, 7, DType::kU8},
       {OpKind::kRecv, ReduceOp::kSum, 0, 2, DType::kF32}}};
  EXPECT_EQ(program.operations, operations);
  EXPECT_EQ(program.operation_count(), 7);
  const std::vector<Program::Event> events = {{0, 0}, {1, 0}, {0, 1}, {1, 1},
                                              {0, 2}, {0, 3}, {1, 2}};
  EXPECT_EQ(program.events, events);
}

TEST(RecordingGroup, TheFirstWaitForAnOperationIsWrittenDown) {
  FakeGroupFactory fake(0, 2, FakeEnd::kWhenWaited);
  RecordingGroupFactory factory(fake);
  const auto group = factory.Create("dp", {0, 1});
  InlineStream stream(Device{DeviceKind::kMeta});
  const Work first = group->Barrier(), second = group->Barrier();
  second.Synchronize();
  const Work copy = first;
  copy.Wait(stream);
  first.Wait(stream);
  second.Wait(stream);
  const std::vector<Program::Event> events = {
      {0, 0}, {0, 1}, {0, 1, /*wait=*/true}, {0, 0, /*wait=*/true}};
  EXPECT_EQ(factory.program().events, events);
}

TEST(RecordingGroup, WhatACompletionIssuesComesAfterTheWaitThatEndedIt) {
  FakeGroupFactory fake(0, 2, FakeEnd::kWhenWaited);
  RecordingGroupFactory factory(fake);
  const auto group = factory.Create("dp", {0, 1});
  const Work first = group->Barrier();
  Work second;
  first.OnDone([&](const absl::Status&) { second = group->Barrier(); });
  first.Synchronize();
  const std::vector<Program::Event> events = {{0, 0}, {0, 0, /*wait=*/true}, {0, 1}};
  EXPECT_EQ(factory.program().events, events);
}

TEST(Program, TheFirstDifferenceOfTwoIsASentence) {
  Program a;
  a.groups = {{"tp0", {0, 1}}, {"dp0", {0, 2}}};
  a.operations = {{{OpKind::kBarrier}},
                  {{OpKind::kAllReduce, ReduceOp::kMax, -1, 4, DType::kF32},
                   {OpKind::kSend, ReduceOp::kSum, 1, 2, DType::kF32}}};
  EXPECT_EQ(FirstDifference(a, "this", a, "that"), "");
  Program b = a;
  b.events.push_back({});  // time is not compared
  EXPECT_EQ(FirstDifference(a, "this", b, "that"), "");
  b.operations[1].pop_back();
  EXPECT_EQ(FirstDifference(a, "this", b, "that"),
            "operation 1 of group dp0: this has Send of 2 fp32 to 1 where that has nothing");
  b.operations[1][0].numel = 5;
  EXPECT_EQ(FirstDifference(a, "this", b, "that"),
            "operation 0 of group dp0: this has AllReduce of 4 fp32 (max) where that has "
            "AllReduce of 5 fp32 (max)");
  b.groups[0].members = {0, 3};
  EXPECT_EQ(FirstDifference(a, "this", b, "that"), "this and that have not made the same groups");
}

}  // namespace
}  // namespace forerun::comm
