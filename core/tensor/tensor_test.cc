// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include <memory>
#include <numeric>
#include <vector>

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

TEST_F(TensorTest, AccessOfTheWrongTypeOrOfNothingDies) {
  EXPECT_DEATH(Iota({2}).data<BFloat16>(), "bf16 vs. fp32");
  EXPECT_DEATH(Tensor().raw_data(), "TestBody .*reads an undefined tensor");
  EXPECT_FALSE(Tensor().defined());
}

TEST_F(TensorTest, ViewsOfTheSameElementsAgreeOnTheirCount) {
  const Tensor t = Iota({4, 6});
  EXPECT_EQ(t.View({2, 12}).strides(), (Shape{12, 1}));
  EXPECT_EQ(t.View({24}).data<float>(), t.data<float>());
  EXPECT_DEATH(t.View({5, 5}), "View of .4, 6. as .5, 5.");
  EXPECT_DEATH(t.Slice(1, 0, 3).View({12}), "contiguous");
  EXPECT_DEATH(t.SplitDim(1, 2, 2), "split of dim 1");
  EXPECT_DEATH(t.Slice(1, 3, 7), "slice .3, 7. of dim 1");
  EXPECT_DEATH(t.Slice(2, 0, 1), "dim 2 of rank 2");
}

TEST_F(TensorTest, NegativeDimsCountFromTheLast) {
  const Tensor t = Iota({4, 6});
  EXPECT_EQ(t.Slice(-1, 2, 4).data<float>(), t.Slice(1, 2, 4).data<float>());
  EXPECT_EQ(t.SplitDim(-1, 3, 2).shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(t.dim(-2), 4);
}

TEST_F(TensorTest, AsMatrixFindsTheRowsOfAnyCollapsibleView) {
  const auto expect = [](const Tensor& view, const Shape& shape, const Shape& strides) {
    EXPECT_EQ(view.AsMatrix().shape(), shape);
    EXPECT_EQ(view.AsMatrix().strides(), strides);
  };
  const Tensor t = Iota({2, 3, 8});
  expect(t, {6, 8}, {8, 1});
  expect(Iota({5}), {1, 5}, {5, 1});
  expect(t.Slice(1, 1, 2), {2, 8}, {24, 1});  // a dim of one row in the middle
  expect(t.Slice(0, 1, 2).Slice(2, 2, 6), {3, 4}, {8, 1});
  expect(t.Slice(0, 1, 2).Slice(1, 1, 2), {1, 8}, {8, 1});  // one row
  expect(t.Slice(2, 0, 1), {6, 1}, {8, 1});
  EXPECT_EQ(t.Slice(0, 0, 0).AsMatrix().shape(), (Shape{0, 8}));
  EXPECT_EQ(t.Slice(2, 0, 0).AsMatrix().shape(), (Shape{6, 0}));
  EXPECT_DEATH(t.Slice(1, 0, 2).AsMatrix(), "do not collapse");
  EXPECT_DEATH(Iota({}).AsMatrix(), "scalar");
}

TEST_F(TensorTest, ContiguityLooksAtDimsThatHaveNeighbours) {
  const Tensor t = Iota({4, 6});
  const Tensor half = t.Slice(1, 0, 3);
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_TRUE(t.Slice(0, 1, 3).is_contiguous());
  EXPECT_FALSE(half.is_contiguous());
  EXPECT_TRUE(half.has_contiguous_rows());
  EXPECT_TRUE(half.Slice(0, 1, 2).is_contiguous());  // one row
  EXPECT_TRUE(t.Slice(1, 2, 2).is_contiguous());     // nothing
}

TEST_F(TensorTest, WrapKeepsItsOwnerUntilTheLastViewIsGone) {
  auto owner = std::make_shared<std::vector<float>>(6, 1.0f);
  const std::weak_ptr<std::vector<float>> alive = owner;
  Tensor view = Tensor::Wrap(owner, owner->data(), {2, 3}, DType::kF32).Slice(0, 1, 2);
  owner.reset();
  EXPECT_FALSE(alive.expired());
  EXPECT_EQ(view.data<float>()[0], 1.0f);
  view = Tensor();
  EXPECT_TRUE(alive.expired());
}

TEST_F(TensorTest, MetaTensorsHaveViewsAndCountTheirBytes) {
  MetaAllocator meta;
  Tensor heads = Tensor::Empty(meta, stream_, {3, 2, 8}, DType::kBF16).Slice(2, 4, 8);
  EXPECT_EQ(heads.SplitDim(2, 2, 2).shape(), (Shape{3, 2, 2, 2}));
  EXPECT_EQ(heads.AsMatrix().strides(), (Shape{8, 1}));
  EXPECT_EQ(meta.bytes_in_use(), 96);
  heads = Tensor();
  EXPECT_EQ(meta.bytes_in_use(), 0);
}

}  // namespace
}  // namespace forerun
