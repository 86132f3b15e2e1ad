// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reduce.h"

#include <tuple>

#include "core/base/parallel_for.h"
#include "core/ops/conformance/testing.h"
#include "core/ops/cpu/reduce.h"
#include "core/ops/reference/reduce.h"
#include "gtest/gtest.h"

// Bounds: sums of rows are fp32, in blocks of 64; the mean is a double sum rounded once. Results
// are fp32 in any dtype.
namespace forerun::conformance {
namespace {

const KernelTable& Reference() {
  static const KernelTable table{.reduce = &reference::Reduce()};
  return table;
}
const KernelTable& Cpu() {
  static const KernelTable table{.reduce = &cpu::Reduce()};
  return table;
}

class ReduceTest : public testing::TestWithParam<std::tuple<Backend, DType>> {
 protected:
  DType dtype() const { return std::get<1>(GetParam()); }
  const OpContext& tested() const { return host_.context(); }
  const OpContext& oracle() const { return reference_.context(); }

  const Host host_{*std::get<0>(GetParam()).kernels};
  const Host reference_{Reference()};
};

TEST_P(ReduceTest, SumRowsMatchesTheReference) {
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 1}, Shape{1, 67}, Shape{0, 5}, Shape{63, 7},
                             Shape{64, 16}, Shape{131, 33}, Shape{257, 130}}) {
    for (bool accumulate : {false, true}) {
      const Tensor x = RandomStrided(host_, shape, dtype(), 1);
      const Tensor sums = Random(host_, {shape[1]}, DType::kF32, 2), e = Clone(host_, sums);
      SumRows(tested(), x, accumulate, sums);
      SumRows(oracle(), AsDoubles(host_, x), accumulate, e);
      ExpectClose(sums, e, 1, 32, shape.ToString());
    }
  }
}

TEST_P(ReduceTest, MeanMatchesTheReference) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{3, 1031}, Shape{20011}}) {
    const Tensor x = Random(host_, shape, dtype(), 1);
    ExpectClose(Mean(tested(), x), Mean(oracle(), AsDoubles(host_, x)), 1, 1, shape.ToString());
  }
}

TEST_P(ReduceTest, MeanSumsInDouble) {
  Tensor x = host_.Empty({3}, DType::kF32);
  x.mutable_data<float>()[1] = 30.0f;
  x.mutable_data<float>()[0] = 1e9f;
  x.mutable_data<float>()[2] = -1e9f;
  EXPECT_EQ(Values(Mean(tested(), x))[0], 10.0);
}

TEST_P(ReduceTest, ThreadsDoNotChangeTheBits) {
  const Tensor x = Random(host_, {401, 259}, dtype(), 1);
  const Tensor one = host_.Empty({259}, DType::kF32), two = host_.Empty({259}, DType::kF32);
  SumRows(tested(), x, false, one);
  const Tensor mean = Mean(tested(), x);
  SetLoopThreads(2);
  SumRows(tested(), x, false, two);
  ExpectSameBits(Mean(tested(), x), mean, "mean");
  SetLoopThreads(1);
  ExpectSameBits(two, one, "sums");
}

INSTANTIATE_TEST_SUITE_P(Backends, ReduceTest,
                         testing::Combine(testing::Values(Backend{"cpu", &Cpu()},
                                                          Backend{"reference", &Reference()}),
                                          testing::ValuesIn(StoredDTypes())),
                         [](const auto& info) {
                           return BackendName(std::get<0>(info.param)) + "_" +
                                  DTypeName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace forerun::conformance
