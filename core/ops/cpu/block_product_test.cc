// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/block_product.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace forerun::cpu {
namespace {

// Small fractions, different for each place.
std::vector<float> Fractions(int64_t count, int64_t step) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>((i * step) % 97 - 48) / 37.0f;
  }
  return values;
}

// The definition: a chain of fused multiply-adds for each element.
float Chain(int64_t k, BlockView a, const float* b, int64_t b_row, float from) {
  for (int64_t p = 0; p < k; ++p) from = std::fma(a.data[p * a.column], b[p * b_row], from);
  return from;
}

void ExpectChains(int64_t m, int64_t n, int64_t k, bool transposed, bool accumulate) {
  const int64_t b_row = n + 5, c_row = n + 3;
  const std::vector<float> a = Fractions(m * k, 31), b = Fractions(k * b_row, 17);
  const std::vector<float> before = Fractions(m * c_row, 13);
  std::vector<float> c = before;
  const BlockView view = transposed ? BlockView{a.data(), 1, m} : BlockView{a.data(), k, 1};
  BlockProduct(m, n, k, view, b.data(), b_row, accumulate, c.data(), c_row);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < c_row; ++j) {
      const float old = before[i * c_row + j];
      const BlockView row{view.data + i * view.row, view.row, view.column};
      const float expected =
          j < n ? Chain(k, row, b.data() + j, b_row, accumulate ? old : 0.0f) : old;
      ASSERT_EQ(c[i * c_row + j], expected)
          << "element " << i << ", " << j << " of " << m << " x " << n << " x " << k;
    }
  }
}

TEST(BlockProduct, EveryElementIsOneChainOfFusedMultiplyAdds) {
  for (int64_t m : {1, 3, 4, 6, 11, 12, 29, 64}) {
    for (int64_t n : {16, 32, 48, 64}) {
      for (int64_t k : {1, 2, 7, 64}) {
        ExpectChains(m, n, k, /*transposed=*/false, /*accumulate=*/false);
        ExpectChains(m, n, k, /*transposed=*/true, /*accumulate=*/true);
      }
    }
  }
}

}  // namespace
}  // namespace forerun::cpu
