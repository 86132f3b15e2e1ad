// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rope.h"

#include <tuple>

#include "core/base/parallel_for.h"
#include "core/ops/conformance/testing.h"
#include "core/ops/cpu/rope.h"
#include "core/ops/reference/rope.h"
#include "gtest/gtest.h"

// Bound: the final rounding, and three fp32 roundings of products and their sum.
namespace forerun::conformance {
namespace {

constexpr double kUnits = 1, kFp32Units = 3;

const KernelTable& Reference() {
  static const KernelTable table{.rope = &reference::Rope()};
  return table;
}
const KernelTable& Cpu() {
  static const KernelTable table{.rope = &cpu::Rope()};
  return table;
}

class RopeTest : public testing::TestWithParam<std::tuple<Backend, DType>> {
 protected:
  DType dtype() const { return std::get<1>(GetParam()); }
  const OpContext& tested() const { return host_.context(); }
  const OpContext& oracle() const { return reference_.context(); }

  const Host host_{*std::get<0>(GetParam()).kernels};
  const Host reference_{Reference()};
};

TEST_P(RopeTest, MatchesTheReferenceInBothDirections) {
  for (const Shape& shape : {Shape{1, 1, 1, 2}, Shape{5, 2, 3, 6}, Shape{131, 1, 2, 16},
                             Shape{33, 2, 1, 64}, Shape{3, 0, 2, 4}}) {
    for (bool inverse : {false, true}) {
      for (double base : {10000.0, 500000.0}) {
        const RopeOptions options{.base = base, .inverse = inverse};
        const Tensor x = Random(host_, shape, dtype(), 1);
        ExpectClose(Rope(tested(), x, options), Rope(oracle(), AsDoubles(host_, x), options),
                    kUnits, kFp32Units, shape.ToString());
      }
    }
  }
}

TEST_P(RopeTest, StaysAccurateAtFarPositions) {
  const Tensor x = Random(host_, {4099, 1, 1, 8}, dtype(), 1);
  ExpectClose(Rope(tested(), x, {}), Rope(oracle(), AsDoubles(host_, x), {}), kUnits, kFp32Units,
              "4099 positions");
}

TEST_P(RopeTest, InverseUndoesTheRotation) {
  const Tensor x = Random(host_, {40, 2, 3, 10}, dtype(), 1);
  const Tensor back = Rope(tested(), Rope(tested(), x, {}), {.inverse = true});
  ExpectClose(back, x, 3 * kUnits, 3 * kFp32Units, "there and back");
}

TEST_P(RopeTest, HeadsOfAFusedProjectionGiveTheBitsOfContiguousOnes) {
  // Three groups of two query heads, a key head and a value head.
  const Tensor qkv = Random(host_, {37, 2, 3 * 4 * 10}, dtype(), 1);
  const Tensor queries = qkv.Slice(2, 40, 60).SplitDim(2, 2, 10);  // of the second group
  const Tensor keys = qkv.SplitDim(2, 3, 40).Slice(3, 20, 30);     // of all groups
  for (const Tensor& x : {queries, keys}) {
    ExpectSameBits(Rope(tested(), x, {}), Rope(tested(), Clone(host_, x), {}), "strided");
  }
}

TEST_P(RopeTest, ThreadsDoNotChangeTheBits) {
  const Tensor x = Random(host_, {301, 2, 3, 32}, dtype(), 1);
  SetLoopThreads(2);
  const Tensor two = Rope(tested(), x, {});
  SetLoopThreads(1);
  ExpectSameBits(Rope(tested(), x, {}), two, "threads");
}

INSTANTIATE_TEST_SUITE_P(Backends, RopeTest,
                         testing::Combine(testing::Values(Backend{"cpu", &Cpu()},
                                                          Backend{"reference", &Reference()}),
                                          testing::ValuesIn(StoredDTypes())),
                         [](const auto& info) {
                           return BackendName(std::get<0>(info.param)) + "_" +
                                  DTypeName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace forerun::conformance
