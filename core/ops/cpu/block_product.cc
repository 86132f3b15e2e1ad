// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/block_product.h"

#include <type_traits>

// Highway compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/ops/cpu/block_product.cc"
#include "hwy/foreach_target.h"  // keep before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace forerun::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// At most 16 floats wide, so that n is a whole number of vectors.
using Floats = hn::CappedTag<float, kBlockColumns>;
using Vector = hn::Vec<Floats>;

struct Factors {
  int64_t k;
  BlockView a;
  const float* b;
  int64_t b_row;
};

// The tile of kRows rows and kVectors vectors at c, all of its sums in registers.
template <int kRows, int kVectors>
HWY_INLINE void Tile(const Factors& of, bool accumulate, float* HWY_RESTRICT c, int64_t c_row) {
  const Floats tag;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(tag));
  Vector sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = accumulate ? hn::LoadU(tag, c + r * c_row + v * lanes) : hn::Zero(tag);
    }
  }
  const float* HWY_RESTRICT a = of.a.data;
  const float* HWY_RESTRICT b = of.b;
  for (int64_t p = 0; p < of.k; ++p, a += of.a.column, b += of.b_row) {
    Vector row[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) row[v] = hn::LoadU(tag, b + v * lanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const Vector factor = hn::Set(tag, a[r * of.a.row]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(factor, row[v], sum[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sum[r][v], tag, c + r * c_row + v * lanes);
  }
}

// kRows rows of C, n columns.
template <int kRows>
HWY_INLINE void Rows(int64_t n, const Factors& of, bool accumulate, float* c, int64_t c_row) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(Floats()));
  Factors at = of;
  int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes) {
    at.b = of.b + j;
    Tile<kRows, 2>(at, accumulate, c + j, c_row);
  }
  for (; j < n; j += lanes) {
    at.b = of.b + j;
    Tile<kRows, 1>(at, accumulate, c + j, c_row);
  }
}

void Product(int64_t m, int64_t n, int64_t k, BlockView a, const float* b, int64_t b_row,
             bool accumulate, float* c, int64_t c_row) {
  // Two sums for each row, two vectors of B and one of A: 27 of 32 registers, or 15 of 16.
  constexpr int kRows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;
  Factors at{k, a, b, b_row};
  int64_t i = 0;
  const auto take = [&](auto rows_constant) {
    constexpr int kTaken = decltype(rows_constant)::value;
    for (; i + kTaken <= m; i += kTaken) {
      at.a.data = a.data + i * a.row;
      Rows<kTaken>(n, at, accumulate, c + i * c_row, c_row);
    }
  };
  take(std::integral_constant<int, kRows>());
  take(std::integral_constant<int, 4>());
  take(std::integral_constant<int, 1>());
}

}  // namespace
}  // namespace forerun::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace forerun::cpu {

HWY_EXPORT(Product);

void BlockProduct(int64_t m, int64_t n, int64_t k, BlockView a, const float* b, int64_t b_row,
                  bool accumulate, float* c, int64_t c_row) {
  HWY_DYNAMIC_DISPATCH(Product)(m, n, k, a, b, b_row, accumulate, c, c_row);
}

}  // namespace forerun::cpu
#endif  // HWY_ONCE
