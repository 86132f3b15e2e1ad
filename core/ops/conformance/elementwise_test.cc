// SPDX-License-Identifier: Apache-2.0
#include "core/ops/elementwise.h"

#include <tuple>

#include "core/base/parallel_for.h"
#include "core/ops/conformance/testing.h"
#include "core/ops/cpu/elementwise.h"
#include "core/ops/reference/elementwise.h"
#include "gtest/gtest.h"

// Bound: one rounding of an exact fp32 sum or product, 2 units of the dtype where the fp32 result
// was itself rounded.
namespace forerun::conformance {
namespace {

const KernelTable& Reference() {
  static const KernelTable table{.elementwise = &reference::Elementwise()};
  return table;
}
const KernelTable& Cpu() {
  static const KernelTable table{.elementwise = &cpu::Elementwise()};
  return table;
}

class ElementwiseTest : public testing::TestWithParam<std::tuple<Backend, DType>> {
 protected:
  DType dtype() const { return std::get<1>(GetParam()); }
  const OpContext& tested() const { return host_.context(); }
  const OpContext& oracle() const { return reference_.context(); }

  const Host host_{*std::get<0>(GetParam()).kernels};
  const Host reference_{Reference()};
};

const Shape kShapes[] = {{}, {1}, {7}, {1031}, {3, 1}, {5, 17}, {2, 3, 64}, {0, 4}, {3, 2003}};

TEST_P(ElementwiseTest, AddMatchesTheReference) {
  for (const Shape& shape : kShapes) {
    const Tensor a = Random(host_, shape, dtype(), 1), b = Random(host_, shape, dtype(), 2);
    ExpectClose(Add(tested(), a, b), Add(oracle(), AsDoubles(host_, a), AsDoubles(host_, b)), 1, 1,
                shape.ToString());
  }
}

TEST_P(ElementwiseTest, AddIntoAddsInPlace) {
  for (const Shape& shape : kShapes) {
    const Tensor a = Random(host_, shape, dtype(), 1), out = Random(host_, shape, dtype(), 2);
    const Tensor sum = Add(tested(), a, out);
    AddInto(tested(), a, out);
    ExpectSameBits(out, sum, shape.ToString());
  }
}

TEST_P(ElementwiseTest, AddRowAddsOneRowToEach) {
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{5, 17}, Shape{2, 3, 64}, Shape{3, 2003}}) {
    const Tensor x = Random(host_, shape, dtype(), 1);
    const Tensor row = Random(host_, {shape[-1]}, dtype(), 2);
    ExpectClose(AddRow(tested(), x, row),
                AddRow(oracle(), AsDoubles(host_, x), AsDoubles(host_, row)), 1, 1,
                shape.ToString());
  }
}

TEST_P(ElementwiseTest, ScaleMatchesTheReference) {
  for (const Shape& shape : kShapes) {
    const Tensor x = Random(host_, shape, dtype(), 1);
    ExpectClose(Scale(tested(), x, 0.3f), Scale(oracle(), AsDoubles(host_, x), 0.3f), 1, 1,
                shape.ToString());
  }
}

TEST_P(ElementwiseTest, StridedRowsGiveTheBitsOfContiguousOnes) {
  const Tensor a = RandomStrided(host_, {6, 5, 37}, dtype(), 1),
               b = RandomStrided(host_, {6, 5, 37}, dtype(), 2);
  const Tensor row = Random(host_, {37}, dtype(), 3);
  const Tensor a_dense = Clone(host_, a), b_dense = Clone(host_, b);
  ExpectSameBits(Add(tested(), a, b), Add(tested(), a_dense, b_dense), "Add");
  ExpectSameBits(AddRow(tested(), a, row), AddRow(tested(), a_dense, row), "AddRow");
  ExpectSameBits(Scale(tested(), a, 3.0f), Scale(tested(), a_dense, 3.0f), "Scale");
  AddInto(tested(), a_dense, b);
  ExpectSameBits(Clone(host_, b), Add(tested(), a_dense, b_dense), "AddInto strided rows");
}

TEST_P(ElementwiseTest, BitsDependOnNoPositionLengthOrThreadCount) {
  const Tensor a = Random(host_, {33009}, dtype(), 1), b = Random(host_, {33009}, dtype(), 2);
  SetLoopThreads(1);
  const Tensor whole = Add(tested(), a, b);
  SetLoopThreads(2);
  ExpectSameBits(Add(tested(), a, b), whole, "two threads");
  SetLoopThreads(1);
  for (int64_t begin : {1, 5, 100}) {
    for (int64_t length : {1, 7, 33}) {
      ExpectSameBits(
          Add(tested(), a.Slice(0, begin, begin + length), b.Slice(0, begin, begin + length)),
          whole.Slice(0, begin, begin + length), "part");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ElementwiseTest,
                         testing::Combine(testing::Values(Backend{"cpu", &Cpu()},
                                                          Backend{"reference", &Reference()}),
                                          testing::ValuesIn(StoredDTypes())),
                         [](const auto& info) {
                           return BackendName(std::get<0>(info.param)) + "_" +
                                  DTypeName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace forerun::conformance
