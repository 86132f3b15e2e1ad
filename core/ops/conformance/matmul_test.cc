// SPDX-License-Identifier: Apache-2.0
#include "core/ops/matmul.h"

#include <cmath>
#include <string>
#include <tuple>

#include "core/base/parallel_for.h"
#include "core/ops/conformance/testing.h"
#include "core/ops/cpu/matmul.h"
#include "core/ops/cpu/plain_matmul.h"
#include "core/ops/reference/matmul.h"
#include "gtest/gtest.h"

// Bounds, relative to the largest value of the result: one unit of its dtype, and for the sum of k
// products in fp32, 4 + sqrt(k) units of fp32. With an activation, which follows a rounding and has
// a slope of at most 1.13, two more units.
namespace forerun::conformance {
namespace {

constexpr double kUnits = 1, kActivatedUnits = 3;
double SumUnits(int64_t k) { return 4.0 + std::sqrt(static_cast<double>(k)); }

const KernelTable& Reference() {
  static const KernelTable table{.matmul = &reference::Matmul()};
  return table;
}
const KernelTable& Cpu() {
  static const KernelTable table{.matmul = &cpu::Matmul()};
  return table;
}
const KernelTable& Plain() {
  static const KernelTable table{.matmul = &cpu::PlainMatmul()};
  return table;
}

struct Sizes {
  int64_t m, n, k;
};
// One, primes, whole vectors, a little more than the blocks of the plain loops, and rows that are
// far apart.
const Sizes kSizes[] = {{1, 1, 1},    {1, 17, 5},  {7, 1, 3},   {5, 3, 1},   {13, 31, 17},
                        {16, 64, 32}, {97, 5, 11}, {3, 259, 7}, {6, 9, 519}, {17, 769, 2}};

Shape Stored(int64_t rows, int64_t columns, bool transposed) {
  return transposed ? Shape{columns, rows} : Shape{rows, columns};
}

std::string What(const Sizes& sizes, const MatmulOptions& options) {
  return Shape{sizes.m, sizes.n, sizes.k}.ToString() + (options.transpose_a ? " a^T" : "") +
         (options.transpose_b ? " b^T" : "");
}

class MatmulTest : public testing::TestWithParam<std::tuple<Backend, DType>> {
 protected:
  DType dtype() const { return std::get<1>(GetParam()); }
  const OpContext& tested() const { return host_.context(); }
  const OpContext& oracle() const { return reference_.context(); }

  Tensor A(const Sizes& sizes, const MatmulOptions& options) const {
    return RandomStrided(host_, Stored(sizes.m, sizes.k, options.transpose_a), dtype(), 1);
  }
  Tensor B(const Sizes& sizes, const MatmulOptions& options) const {
    return RandomStrided(host_, Stored(sizes.k, sizes.n, options.transpose_b), dtype(), 2, 5);
  }
  Tensor Exact(const Tensor& x) const { return AsDoubles(host_, x); }

  // out += a b, with the product of doubles as the oracle.
  void ExpectAccumulates(const Sizes& sizes, DType out_dtype) const {
    const MatmulOptions options{.transpose_a = true, .accumulate = true};
    const Tensor a = A(sizes, options), b = B(sizes, options);
    const Tensor out = RandomStrided(host_, {sizes.m, sizes.n}, out_dtype, 3);
    const Tensor expected = Exact(out);
    MatmulInto(tested(), a, b, options, out);
    MatmulInto(oracle(), Exact(a), Exact(b), options, expected);
    ExpectClose(out, expected, kUnits, SumUnits(sizes.k), What(sizes, options));
  }

  const Host host_{*std::get<0>(GetParam()).kernels};
  const Host reference_{Reference()};
};

TEST_P(MatmulTest, EveryTransposeMatchesTheReference) {
  for (const Sizes& sizes : kSizes) {
    for (int transposes = 0; transposes < 4; ++transposes) {
      const MatmulOptions options{.transpose_a = (transposes & 1) != 0,
                                  .transpose_b = (transposes & 2) != 0};
      const Tensor a = A(sizes, options), b = B(sizes, options);
      const Tensor expected = Matmul(oracle(), Exact(a), Exact(b), options);
      ExpectClose(Matmul(tested(), a, b, options), expected, kUnits, SumUnits(sizes.k),
                  What(sizes, options));
    }
  }
}

TEST_P(MatmulTest, AnFp32ResultOf16BitFactorsIsNotRoundedTo16Bits) {
  for (const Sizes& sizes : kSizes) {
    const Tensor a = A(sizes, {}), b = B(sizes, {});
    const Tensor out = host_.Empty({sizes.m, sizes.n}, DType::kF32);
    MatmulInto(tested(), a, b, {}, out);
    const Tensor expected = Matmul(oracle(), Exact(a), Exact(b));
    ExpectClose(out, expected, kUnits, SumUnits(sizes.k), What(sizes, {}));
  }
}

TEST_P(MatmulTest, AccumulateAddsToAnFp32Gradient) {
  for (const Sizes& sizes : kSizes) ExpectAccumulates(sizes, DType::kF32);
}

TEST_P(MatmulTest, AccumulateAddsToAResultOfTheSameDType) {
  for (const Sizes& sizes : kSizes) ExpectAccumulates(sizes, dtype());
}

TEST_P(MatmulTest, BiasIsAddedToEveryRow) {
  for (const Sizes& sizes : kSizes) {
    MatmulOptions options{.transpose_b = true};
    const Tensor a = A(sizes, options), b = B(sizes, options);
    options.bias = Random(host_, {sizes.n}, dtype(), 4);
    MatmulOptions exact = options;
    exact.bias = Exact(options.bias);
    ExpectClose(Matmul(tested(), a, b, options), Matmul(oracle(), Exact(a), Exact(b), exact),
                kUnits, SumUnits(sizes.k), What(sizes, options));
  }
}

TEST_P(MatmulTest, GeluFollowsTheBiasAndKeepsTheValueBefore) {
  for (const Sizes& sizes : kSizes) {
    for (GeluKind gelu : {GeluKind::kTanh, GeluKind::kExact}) {
      for (DType out_dtype : {dtype(), DType::kF32}) {
        MatmulOptions options{.gelu = gelu};
        const Tensor a = A(sizes, options), b = B(sizes, options);
        options.bias = Random(host_, {sizes.n}, dtype(), 4);
        options.pre_activation = host_.Empty({sizes.m, sizes.n}, dtype());
        MatmulOptions exact = options;
        exact.bias = Exact(options.bias);
        exact.pre_activation = host_.Empty({sizes.m, sizes.n}, DType::kF64);
        const Tensor out = host_.Empty({sizes.m, sizes.n}, out_dtype);
        MatmulInto(tested(), a, b, options, out);
        const Tensor expected = Matmul(oracle(), Exact(a), Exact(b), exact);
        ExpectClose(options.pre_activation, exact.pre_activation, kUnits, SumUnits(sizes.k),
                    "before " + What(sizes, options));
        ExpectClose(out, expected, kActivatedUnits, 2 * SumUnits(sizes.k), What(sizes, options));
      }
    }
  }
}

TEST_P(MatmulTest, GeluNeedsNobodyToKeepTheValueBefore) {
  const MatmulOptions options{.gelu = GeluKind::kTanh};
  const Sizes sizes{13, 31, 17};
  const Tensor a = A(sizes, options), b = B(sizes, options);
  ExpectClose(Matmul(tested(), a, b, options), Matmul(oracle(), Exact(a), Exact(b), options),
              kActivatedUnits, 2 * SumUnits(sizes.k), "gelu");
}

// Dims long enough that some backends take them in pieces.
TEST_P(MatmulTest, LongDimsMatchTheReference) {
  for (const Sizes& sizes : {Sizes{4099, 2, 3}, Sizes{3, 4099, 2}, Sizes{2, 3, 8197}}) {
    MatmulOptions options{.transpose_b = true};
    const Tensor a = A(sizes, options), b = B(sizes, options);
    options.bias = Random(host_, {sizes.n}, dtype(), 4);
    MatmulOptions exact = options;
    exact.bias = Exact(options.bias);
    ExpectClose(Matmul(tested(), a, b, options), Matmul(oracle(), Exact(a), Exact(b), exact),
                kUnits, SumUnits(sizes.k), What(sizes, options));
    ExpectAccumulates(sizes, DType::kF32);
    ExpectAccumulates(sizes, dtype());
  }
}

TEST_P(MatmulTest, WhatLiesBetweenTheRowsOfTheResultStays) {
  const Sizes sizes{5, 7, 9};
  const Tensor whole = Random(host_, {sizes.m, 2 * sizes.n}, dtype(), 5);
  const Tensor before = Clone(host_, whole.Slice(1, sizes.n, 2 * sizes.n));
  MatmulInto(tested(), A(sizes, {}), B(sizes, {}), {}, whole.Slice(1, 0, sizes.n));
  ExpectSameBits(Clone(host_, whole.Slice(1, sizes.n, 2 * sizes.n)), before, "beside the result");
}

TEST_P(MatmulTest, NothingIsMultipliedForNoRows) {
  EXPECT_EQ(Matmul(tested(), host_.Empty({0, 3}, dtype()), host_.Empty({3, 4}, dtype())).shape(),
            (Shape{0, 4}));
}

INSTANTIATE_TEST_SUITE_P(Backends, MatmulTest,
                         testing::Combine(testing::Values(Backend{"Cpu", &Cpu()},
                                                          Backend{"Plain", &Plain()}),
                                          testing::ValuesIn(StoredDTypes())),
                         [](const auto& info) {
                           return BackendName(std::get<0>(info.param)) +
                                  DTypeName(std::get<1>(info.param));
                         });

class PlainMatmulTest : public testing::Test {
 protected:
  const Host host_{Plain()};
};

TEST_F(PlainMatmulTest, BitsDoNotDependOnThreads) {
  const Tensor a = Random(host_, {200, 300}, DType::kF32, 1);
  const Tensor b = Random(host_, {300, 520}, DType::kF32, 2);
  SetLoopThreads(1);
  const Tensor one = Matmul(host_.context(), a, b);
  SetLoopThreads(2);
  const Tensor two = Matmul(host_.context(), a, b);
  SetLoopThreads(1);
  ExpectSameBits(one, two, "1 and 2 threads");
}

TEST_F(PlainMatmulTest, BitsOfARowDoNotDependOnItsPlace) {
  const Tensor a = Random(host_, {131, 270}, DType::kF32, 1);
  const Tensor b = Random(host_, {270, 290}, DType::kF32, 2);
  const Tensor whole = Matmul(host_.context(), a, b);
  for (int64_t row : {0, 12, 95, 96, 130}) {
    const Tensor alone = Matmul(host_.context(), a.Slice(0, row, row + 1), b);
    ExpectSameBits(alone, whole.Slice(0, row, row + 1), "row " + std::to_string(row));
  }
}

TEST(MatmulDeathTest, MisfitsNameBothShapes) {
  const Host host(Plain());
  const Tensor a = host.Empty({2, 3}, DType::kF32), b = host.Empty({2, 4}, DType::kF32);
  EXPECT_DEATH(Matmul(host.context(), a, b), R"(inner dims of \[2, 3\] times \[2, 4\])");
  EXPECT_DEATH(MatmulInto(host.context(), a, b,
                          {.transpose_a = true, .accumulate = true, .gelu = GeluKind::kTanh},
                          host.Empty({3, 4}, DType::kF32)),
               "takes no bias and no activation");
}

}  // namespace
}  // namespace forerun::conformance
