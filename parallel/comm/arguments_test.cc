// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/arguments.h"

#include <memory>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/tensor/shape.h"
#include "gtest/gtest.h"
#include "parallel/comm/conformance_oracle.h"
#include "parallel/comm/fake/fake_group.h"

namespace forerun::comm {
namespace {

// Rank 1 of 4.
class Arguments : public testing::Test {
 protected:
  static std::string Text(const absl::Status& status) { return std::string(status.message()); }

  FakeGroupFactory factory_{1, 4};
  const std::unique_ptr<ProcessGroup> group_ = factory_.Create("tp", {0, 1, 2, 3});
};

TEST_F(Arguments, GoodCallsAreOk) {
  const Tensor whole = Zeros<float>(20);
  EXPECT_TRUE(CheckAllReduce(*group_, whole).ok());
  EXPECT_TRUE(CheckAllGather(*group_, Zeros<float>(5), whole).ok());
  EXPECT_TRUE(CheckAllGather(*group_, whole.Slice(0, 5, 10), whole).ok());
  EXPECT_TRUE(CheckReduceScatter(*group_, whole, whole.Slice(0, 5, 10)).ok());
  EXPECT_TRUE(CheckBroadcast(*group_, whole.AsReadOnly(), 1).ok());
  EXPECT_TRUE(CheckSend(*group_, whole.AsReadOnly(), 1).ok());
  EXPECT_TRUE(CheckRecv(*group_, Zeros<uint8_t>(0), 3).ok());
}

TEST_F(Arguments, MetaTensorsWillDo) {
  const Device meta{DeviceKind::kMeta};
  const auto tensor = [&](int64_t numel) {
    return Tensor::Wrap(nullptr, nullptr, Shape{numel}, DType::kF32, meta);
  };
  EXPECT_TRUE(CheckAllGather(*group_, tensor(5), tensor(20)).ok());
  EXPECT_FALSE(CheckAllGather(*group_, tensor(5), tensor(19)).ok());
  EXPECT_EQ(Text(CheckAllGather(*group_, tensor(5), Zeros<float>(20))),
            "group tp: AllGather's tensors lie on two devices");
}

TEST_F(Arguments, TensorsAreDefinedContiguousAndWritableWhereWritten) {
  const Tensor matrix = Zeros<float>(20).View({4, 5});
  EXPECT_EQ(Text(CheckAllReduce(*group_, Tensor())), "group tp: AllReduce's tensor is undefined");
  EXPECT_EQ(Text(CheckAllReduce(*group_, matrix.Slice(1, 0, 2))),
            "group tp: AllReduce's tensor of 8 fp32 is not contiguous");
  EXPECT_EQ(Text(CheckRecv(*group_, matrix.AsReadOnly(), 0)),
            "group tp: Recv's tensor is read-only");
  EXPECT_EQ(Text(CheckBroadcast(*group_, matrix.AsReadOnly(), 0)),
            "group tp: Broadcast's tensor is read-only");
}

TEST_F(Arguments, ThePartsFillTheWhole) {
  EXPECT_EQ(Text(CheckAllGather(*group_, Zeros<float>(5), Zeros<float>(21))),
            "group tp: AllGather's whole of 21 elements is not 4 parts of 5");
  EXPECT_EQ(Text(CheckReduceScatter(*group_, Zeros<float>(21), Zeros<float>(5))),
            "group tp: ReduceScatter's whole of 21 elements is not 4 parts of 5");
  EXPECT_EQ(Text(CheckAllGather(*group_, Zeros<float>(5), Zeros<int32_t>(20))),
            "group tp: AllGather's tensors are fp32 and int32");
}

TEST_F(Arguments, TensorsOverlapAtTheOwnPartOnly) {
  const Tensor whole = Zeros<float>(20);
  for (int64_t begin = 0; begin <= 15; ++begin) {
    const Tensor part = whole.Slice(0, begin, begin + 5);
    EXPECT_EQ(CheckAllGather(*group_, part, whole).ok(), begin == 5) << begin;
    EXPECT_EQ(CheckReduceScatter(*group_, whole, part).ok(), begin == 5) << begin;
  }
  EXPECT_EQ(Text(CheckAllGather(*group_, whole.Slice(0, 0, 5), whole)),
            "group tp: AllGather's tensors overlap, and the smaller is not part 1 of the larger");
}

TEST_F(Arguments, RanksAreInTheGroupAndBytesAreNotAdded) {
  EXPECT_EQ(Text(CheckBroadcast(*group_, Zeros<float>(1), 4)),
            "group tp: Broadcast's root 4 is not one of 4 ranks");
  EXPECT_EQ(Text(CheckSend(*group_, Zeros<float>(1), -1)),
            "group tp: Send's peer -1 is not one of 4 ranks");
  EXPECT_EQ(Text(CheckAllReduce(*group_, Zeros<uint8_t>(4))), "group tp: AllReduce cannot add uint8");
}

}  // namespace
}  // namespace forerun::comm
