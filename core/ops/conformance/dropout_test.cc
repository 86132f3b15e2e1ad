// SPDX-License-Identifier: Apache-2.0
#include "core/ops/dropout.h"

#include <tuple>
#include <vector>

#include "core/base/parallel_for.h"
#include "core/ops/conformance/testing.h"
#include "core/ops/cpu/dropout.h"
#include "core/ops/reference/dropout.h"
#include "gtest/gtest.h"

// Bounds: one unit for the product, one for the rounded factor 1 / (1 - p).
namespace forerun::conformance {
namespace {

constexpr double kUnits = 1, kFactorUnits = 2;

const KernelTable& Reference() {
  static const KernelTable table{.dropout = &reference::Dropout()};
  return table;
}
const KernelTable& Cpu() {
  static const KernelTable table{.dropout = &cpu::Dropout()};
  return table;
}

DropoutOptions Whole(const Shape& shape, float p) {
  Shape zero = shape;
  for (int dim = 0; dim < shape.rank(); ++dim) zero.set(dim, 0);
  return {.p = p, .key = RandomKey::Root(5), .global = shape, .offset = zero};
}

class DropoutTest : public testing::TestWithParam<std::tuple<Backend, DType>> {
 protected:
  DType dtype() const { return std::get<1>(GetParam()); }
  const OpContext& tested() const { return host_.context(); }
  const OpContext& oracle() const { return reference_.context(); }

  const Host host_{*std::get<0>(GetParam()).kernels};
  const Host reference_{Reference()};
};

TEST_P(DropoutTest, MatchesTheReference) {
  for (const Shape& shape :
       {Shape{1}, Shape{1031}, Shape{5, 17}, Shape{2, 3, 64}, Shape{0, 3}, Shape{3, 2, 1, 7}}) {
    for (float p : {0.0f, 0.1f, 0.9f}) {
      const Tensor x = RandomStrided(host_, shape, dtype(), 1);
      ExpectClose(Dropout(tested(), x, Whole(shape, p)),
                  Dropout(oracle(), AsDoubles(host_, x), Whole(shape, p)), kUnits, kFactorUnits,
                  shape.ToString());
    }
  }
}

TEST_P(DropoutTest, APartGetsTheBitsOfItsPlaceInTheWhole) {
  const Shape global{6, 3, 40};
  const Tensor x = Random(host_, global, dtype(), 2);
  const DropoutOptions options = Whole(global, 0.4f);
  const Tensor whole = Dropout(tested(), x, options);
  DropoutOptions of_part = options;
  of_part.offset = {2, 1, 9};
  const auto part = [](const Tensor& t) { return t.Slice(0, 2, 5).Slice(1, 1, 3).Slice(2, 9, 31); };
  ExpectSameBits(Dropout(tested(), part(x), of_part), Clone(host_, part(whole)), "part");
}

TEST_P(DropoutTest, DropsTheShareAskedFor) {
  const Shape shape{100, 1000};
  const Tensor x = Random(host_, shape, dtype(), 3);
  int64_t zeros = 0;
  for (double value : Values(Dropout(tested(), x, Whole(shape, 0.25f)))) zeros += value == 0.0;
  EXPECT_NEAR(static_cast<double>(zeros) / 1e5, 0.25, 0.01);
}

TEST_P(DropoutTest, BitsDoNotDependOnThreads) {
  const Shape shape{97, 403};
  const Tensor x = Random(host_, shape, dtype(), 4);
  SetLoopThreads(1);
  const Tensor one = Dropout(tested(), x, Whole(shape, 0.3f));
  SetLoopThreads(2);
  const Tensor two = Dropout(tested(), x, Whole(shape, 0.3f));
  SetLoopThreads(1);
  ExpectSameBits(one, two, "1 and 2 threads");
}

INSTANTIATE_TEST_SUITE_P(Backends, DropoutTest,
                         testing::Combine(testing::Values(Backend{"Cpu", &Cpu()}),
                                          testing::ValuesIn(StoredDTypes())),
                         [](const auto& info) {
                           return BackendName(std::get<0>(info.param)) +
                                  DTypeName(std::get<1>(info.param));
                         });

TEST(DropoutDeathTest, ABoxOutsideTheWholeIsNamed) {
  const Host host(Cpu());
  DropoutOptions options = Whole({4, 4}, 0.5f);
  options.offset = {3, 0};
  EXPECT_DEATH(Dropout(host.context(), host.Empty({2, 4}, DType::kF32), options),
               R"(\[2, 4\] at \[3, 0\] lies outside \[4, 4\])");
}

}  // namespace
}  // namespace forerun::conformance
