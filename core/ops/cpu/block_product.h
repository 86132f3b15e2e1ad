// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace forerun::cpu {

// Row lengths of B and C are multiples of this: the longest vector, in floats.
constexpr int64_t kBlockColumns = 16;

// A matrix whose element (i, j) is data[i * row + j * column].
struct BlockView {
  const float* data;
  int64_t row;
  int64_t column;
};

// C = A B, or C += A B, on one thread, for blocks that fit the caches: A is [m, k]; B is [k, n],
// its rows contiguous and `b_row` apart; C is [m, n], likewise. n is a multiple of kBlockColumns.
// C overlaps neither factor.
//
// Each element is a chain of fused multiply-adds in the order of k, from zero or from what C held:
// its bits do not depend on its place, on m or n, or on the vector length, which is chosen at run
// time (AVX2, AVX-512).
void BlockProduct(int64_t m, int64_t n, int64_t k, BlockView a, const float* b, int64_t b_row,
                  bool accumulate, float* c, int64_t c_row);

}  // namespace forerun::cpu
