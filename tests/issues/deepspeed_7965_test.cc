// SPDX-License-Identifier: Apache-2.0
// DeepSpeed 7965: a buffer was freed, and handed out again, before the copy that was queued on it
// had run. The kind of fault: memory that belongs to an operation but is held by nobody.
#include <algorithm>
#include <memory>
#include <vector>

#include "core/autograd/testing/test_device.h"
#include "gtest/gtest.h"
#include "parallel/comm/local/local_hub.h"

namespace forerun {
namespace {

constexpr int64_t kNumel = 1000;

Tensor Filled(const TestDevice& device, float value) {
  const Tensor tensor = device.op().Empty({kNumel}, DType::kF32);
  std::fill_n(tensor.mutable_data<float>(), kNumel, value);
  return tensor;
}

class DeepSpeed7965 : public testing::TestWithParam<int64_t> {  // inline bytes
 protected:
  comm::LocalHub::Options Options() const {
    comm::LocalHub::Options options;
    options.inline_bytes = GetParam();
    return options;
  }

  const TestDevice devices_[2] = {TestDevice(DeviceKind::kCpu), TestDevice(DeviceKind::kCpu)};
  comm::LocalHub hub_{2, Options()};
  const std::unique_ptr<comm::GroupFactory> factories_[2] = {hub_.Join(0), hub_.Join(1)};
  const std::unique_ptr<comm::ProcessGroup> groups_[2] = {factories_[0]->Create("dp", {0, 1}),
                                                          factories_[1]->Create("dp", {0, 1})};
};

TEST_P(DeepSpeed7965, AnOperationHoldsItsBuffersUntilItEnds) {
  Tensor own = Filled(devices_[0], 3.0f);
  const comm::Work work = groups_[0]->AllReduce(own, comm::ReduceOp::kSum);
  const comm::Work sent = groups_[0]->Send(Filled(devices_[0], 5.0f), 1);
  own = Tensor();                                     // only the operation has it
  const Tensor reused = Filled(devices_[0], 100.0f);  // would be the same memory, had it been freed
  const Tensor other = Filled(devices_[1], 4.0f);
  groups_[1]->AllReduce(other, comm::ReduceOp::kSum).Synchronize();
  EXPECT_EQ(ValuesOf(other), std::vector<double>(kNumel, 7.0));
  const Tensor received = Filled(devices_[1], 0.0f);
  groups_[1]->Recv(received, 0).Synchronize();
  EXPECT_EQ(ValuesOf(received), std::vector<double>(kNumel, 5.0));
  work.Synchronize();
  sent.Synchronize();
  EXPECT_EQ(ValuesOf(reused), std::vector<double>(kNumel, 100.0));
}

// And no longer, although its works live on.
TEST_P(DeepSpeed7965, AnOperationThatHasEndedHoldsNothing) {
  const comm::Work works[] = {
      groups_[0]->AllReduce(Filled(devices_[0], 1.0f), comm::ReduceOp::kSum),
      groups_[1]->AllReduce(Filled(devices_[1], 1.0f), comm::ReduceOp::kSum)};
  for (const comm::Work& work : works) work.Synchronize();
  EXPECT_EQ(devices_[0].allocator().bytes_in_use(), 0);
  EXPECT_EQ(devices_[1].allocator().bytes_in_use(), 0);
}

INSTANTIATE_TEST_SUITE_P(InlineOrOnProgressThreads, DeepSpeed7965, testing::Values(1 << 20, 0));

}  // namespace
}  // namespace forerun
