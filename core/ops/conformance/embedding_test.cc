// SPDX-License-Identifier: Apache-2.0
#include "core/ops/embedding.h"

#include <tuple>

#include "core/base/parallel_for.h"
#include "core/ops/conformance/testing.h"
#include "core/ops/cpu/embedding.h"
#include "core/ops/reference/embedding.h"
#include "gtest/gtest.h"

// Bounds: forward copies, so bits are equal. Backward adds in fp32, in token order: kSumUnits of
// fp32 for up to a few dozen terms a row.
namespace forerun::conformance {
namespace {

constexpr double kSumUnits = 16;

const KernelTable& Reference() {
  static const KernelTable table{.embedding = &reference::Embedding()};
  return table;
}
const KernelTable& Cpu() {
  static const KernelTable table{.embedding = &cpu::Embedding()};
  return table;
}

class EmbeddingTest : public testing::TestWithParam<std::tuple<Backend, DType>> {
 protected:
  DType dtype() const { return std::get<1>(GetParam()); }
  const OpContext& tested() const { return host_.context(); }
  const OpContext& oracle() const { return reference_.context(); }
  // Some tokens lie below and above the rows [kFirstRow, kFirstRow + kRows) that are here.
  Tensor Tokens(const Shape& shape) const { return RandomTokens(host_, shape, 0, 20, 1); }

  static constexpr int64_t kFirstRow = 4, kRows = 11;
  const Host host_{*std::get<0>(GetParam()).kernels};
  const Host reference_{Reference()};
};

const Shape kTokens[] = {{1}, {7}, {5, 3}, {31, 2, 2}, {0, 2}};
const int64_t kWidths[] = {1, 5, 64, 131};

TEST_P(EmbeddingTest, ForwardCopiesRowsAndZeroesWhatIsNotHere) {
  for (const Shape& shape : kTokens) {
    for (int64_t h : kWidths) {
      const Tensor tokens = Tokens(shape);
      const Tensor table = RandomStrided(host_, {kRows, h}, dtype(), 2);
      ExpectSameBits(Embedding(tested(), tokens, table, kFirstRow),
                     Embedding(oracle(), tokens, table, kFirstRow), shape.ToString());
    }
  }
}

TEST_P(EmbeddingTest, BackwardAddsOrOverwrites) {
  for (const Shape& shape : kTokens) {
    for (int64_t h : kWidths) {
      for (bool accumulate : {false, true}) {
        const Tensor tokens = Tokens(shape);
        const Shape out = EmbeddingShape(shape, Shape{kRows, h});
        const Tensor dout = RandomStrided(host_, out, dtype(), 3);
        const Tensor actual = Random(host_, {kRows, h}, DType::kF32, 4);
        const Tensor expected = Clone(host_, actual);
        EmbeddingBackward(tested(), tokens, dout, kFirstRow, accumulate, actual);
        EmbeddingBackward(oracle(), tokens, dout, kFirstRow, accumulate, expected);
        ExpectClose(actual, expected, 0, kSumUnits, shape.ToString());
      }
    }
  }
}

TEST_P(EmbeddingTest, BitsDoNotDependOnThreads) {
  const Tensor tokens = Tokens({300});
  const Tensor dout = Random(host_, {300, 517}, dtype(), 5);
  const auto gradient = [&](int threads) {
    SetLoopThreads(threads);
    const Tensor dtable = host_.Empty({kRows, 517}, DType::kF32);
    EmbeddingBackward(tested(), tokens, dout, kFirstRow, false, dtable);
    SetLoopThreads(1);
    return dtable;
  };
  ExpectSameBits(gradient(1), gradient(2), "1 and 2 threads");
}

INSTANTIATE_TEST_SUITE_P(Backends, EmbeddingTest,
                         testing::Combine(testing::Values(Backend{"Cpu", &Cpu()}),
                                          testing::ValuesIn(StoredDTypes())),
                         [](const auto& info) {
                           return BackendName(std::get<0>(info.param)) +
                                  DTypeName(std::get<1>(info.param));
                         });

}  // namespace
}  // namespace forerun::conformance
