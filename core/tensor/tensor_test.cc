// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "gtest/gtest.h"

namespace forerun {
namespace {

class TensorTest : public testing::Test {
 protected:
  Tensor Iota(const Shape& shape) {
    Tensor t = Tensor::Empty(allocator_, stream_, shape, DType::kF32);
    std::iota(t.mutable_data<float>(), t.mutable_data<float>() + t.numel(), 0.0f);
    return t;
  }
  CpuAllocator allocator_;
  InlineStream stream_{Device{}};
};

TEST_F(TensorTest, ViewsShareMemoryAndKeepItAlive) {
  Tensor column;
  {
    Tensor t = Iota({4, 6});
    column = t.Slice(1, 2, 4);
  }
  EXPECT_EQ(column.shape(), (Shape{4, 2}));
  EXPECT_FALSE(column.is_contiguous());
  EXPECT_EQ(column.data<float>()[0], 2.0f);
  EXPECT_EQ(column.data<float>()[column.strides()[0]], 8.0f);
  column = Tensor();
  EXPECT_EQ(allocator_.bytes_in_use(), 0);
}

TEST_F(TensorTest, SplitDimAndAsMatrixAreInverseOnCollapsibleDims) {
  Tensor t = Iota({2, 3, 8});
  Tensor heads = t.Slice(2, 0, 4).SplitDim(2, 2, 2);
  EXPECT_EQ(heads.shape(), (Shape{2, 3, 2, 2}));
  EXPECT_EQ(heads.strides(), (Shape{24, 8, 2, 1}));
  EXPECT_EQ(t.Slice(2, 4, 8).AsMatrix().shape(), (Shape{6, 4}));
  EXPECT_EQ(t.Slice(2, 4, 8).AsMatrix().strides(), (Shape{8, 1}));
}

TEST_F(TensorTest, ReadOnlyAndMetaTensorsGiveNoMutableValues) {
  Tensor t = Iota({2}).AsReadOnly();
  EXPECT_EQ(t.data<float>()[1], 1.0f);
  EXPECT_DEATH(t.Slice(0, 0, 1).mutable_data<float>(), "read-only");
  MetaAllocator meta;
  Tensor m = Tensor::Empty(meta, stream_, {1 << 20, 1 << 20}, DType::kBF16);
  EXPECT_EQ(m.bytes(), int64_t{1} << 41);
  EXPECT_DEATH(m.data<BFloat16>(), "TestBody .*tensor_test.cc:.* meta tensor of shape .1048576");
}

TEST(DTypes, ConversionsRoundToNearestEvenAndKeepSpecials) {
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f + 1.0f / 256)), 1.0f);            // tie to even
  EXPECT_EQ(static_cast<float>(BFloat16(1.0f + 3.0f / 256)), 1.0f + 4.0f / 256);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::nanf("")))));
  EXPECT_TRUE(std::isinf(static_cast<float>(BFloat16(std::numeric_limits<float>::max()))));
  EXPECT_EQ(static_cast<float>(Float16(65504.0f)), 65504.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(Float16(65536.0f))));
}

}  // namespace
}  // namespace forerun
