// SPDX-License-Identifier: Apache-2.0
#include "core/ops/copy.h"

#include <cstring>
#include <tuple>
#include <vector>

#include "core/base/parallel_for.h"
#include "core/ops/conformance/testing.h"
#include "core/ops/cpu/copy.h"
#include "core/ops/reference/copy.h"
#include "gtest/gtest.h"

// Bound: none. A copy has the bits of its source, in every dtype.
namespace forerun::conformance {
namespace {

const KernelTable& Reference() {
  static const KernelTable table{.copy = &reference::Copy()};
  return table;
}
const KernelTable& Cpu() {
  static const KernelTable table{.copy = &cpu::Copy()};
  return table;
}

constexpr DType kAll[] = {DType::kF32, DType::kBF16, DType::kF16, DType::kF64,
                          DType::kI32, DType::kI64,  DType::kU8};

class CopyTest : public testing::TestWithParam<std::tuple<Backend, DType>> {
 protected:
  DType dtype() const { return std::get<1>(GetParam()); }
  const OpContext& tested() const { return host_.context(); }
  const OpContext& oracle() const { return reference_.context(); }

  // Every byte another, as far as bytes go.
  Tensor Bytes(const Shape& shape, int first) const {
    Tensor x = host_.Empty(shape, dtype());
    auto* bytes = static_cast<unsigned char*>(x.raw_mutable_data());
    for (int64_t i = 0; i < x.bytes(); ++i) bytes[i] = static_cast<unsigned char>(i * 7 + first);
    return x;
  }

  // Copies `from` to a view of a tensor of shape `whole`, by both, and compares all of it: what
  // lies outside the view must stay.
  template <typename View>
  void ExpectCopies(const Tensor& from, const Shape& whole, View view) const {
    const Tensor a = Bytes(whole, 3), b = Bytes(whole, 3);
    CopyInto(tested(), from, view(a));
    CopyInto(oracle(), from, view(b));
    ExpectSameBits(a, b, from.shape().ToString());
  }

  const Host host_{*std::get<0>(GetParam()).kernels};
  const Host reference_{Reference()};
};

TEST_P(CopyTest, ContiguousTensorsOfAnyShape) {
  for (const Shape& shape :
       {Shape{}, Shape{1}, Shape{7}, Shape{3, 1031}, Shape{0, 4}, Shape{2, 1, 3, 1, 5, 2}}) {
    ExpectCopies(Bytes(shape, 0), shape, [](const Tensor& t) { return t; });
  }
}

TEST_P(CopyTest, SlicesOnEitherSide) {
  const Tensor x = Bytes({5, 6, 7, 8}, 0);
  for (int dim = 0; dim < 4; ++dim) {
    const auto slice = [dim](const Tensor& t) { return t.Slice(dim, 1, 4); };
    ExpectCopies(slice(x), slice(x).shape(), [](const Tensor& t) { return t; });
    ExpectCopies(slice(x), {5, 6, 7, 8}, slice);
    ExpectCopies(Contiguous(oracle(), slice(x)), {5, 6, 7, 8}, slice);
  }
}

TEST_P(CopyTest, ColumnsAreNotContiguousInTheLastDim) {
  const Tensor x = Bytes({33, 5}, 0);
  const auto column = [](const Tensor& t) { return t.SplitDim(1, 5, 1).Slice(1, 2, 3); };
  ExpectCopies(column(x), {33, 1, 1}, [](const Tensor& t) { return t; });
  ExpectCopies(column(x), {33, 5}, column);
}

TEST_P(CopyTest, ContiguousIsTheTensorItselfWhereItCan) {
  const Tensor x = Bytes({4, 6}, 0);
  EXPECT_EQ(Contiguous(tested(), x).raw_data(), x.raw_data());
  const Tensor dense = Contiguous(tested(), x.Slice(1, 1, 5));
  EXPECT_TRUE(dense.is_contiguous());
  ExpectSameBits(dense, Contiguous(oracle(), x.Slice(1, 1, 5)), "slice");
}

TEST_P(CopyTest, ThreadsDoNotChangeTheBits) {
  const Tensor flat = Bytes({70003}, 0), rows = Bytes({101, 400}, 0).Slice(1, 3, 390);
  SetLoopThreads(2);
  ExpectCopies(flat, {70003}, [](const Tensor& t) { return t; });
  ExpectCopies(rows, {101, 387}, [](const Tensor& t) { return t; });
  const auto column = [](const Tensor& t) { return t.SplitDim(1, 2, 1).Slice(1, 1, 2); };
  ExpectCopies(column(Bytes({33009, 2}, 0)), {33009, 2}, column);
  SetLoopThreads(1);
}

TEST_P(CopyTest, FillTouchesNothingElse) {
  if (!IsFloating(dtype())) GTEST_SKIP() << "floating dtypes only";
  for (int dim = 0; dim < 3; ++dim) {
    const Tensor a = Bytes({3, 5, 7}, 0), b = Bytes({3, 5, 7}, 0);
    Fill(tested(), 0.3f, a.Slice(dim, 1, 3));
    Fill(oracle(), 0.3f, b.Slice(dim, 1, 3));
    ExpectSameBits(a, b, "fill");
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, CopyTest,
                         testing::Combine(testing::Values(Backend{"cpu", &Cpu()},
                                                          Backend{"reference", &Reference()}),
                                          testing::ValuesIn(kAll)),
                         [](const auto& info) {
                           return BackendName(std::get<0>(info.param)) + "_" +
                                  DTypeName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace forerun::conformance
