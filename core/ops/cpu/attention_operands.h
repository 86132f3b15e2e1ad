// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/ops/cpu/attention_block.h"
#include "core/ops/cpu/block_product.h"
#include "core/ops/cpu/vectors.h"
#include "core/tensor/tensor.h"

// What attention reads and writes: the rows of one head, in floats while it computes.
namespace forerun::cpu {

struct AttentionSizes {
  int64_t s, b, heads, kv_heads, d;
  int64_t width;       // d rounded up to whole vectors; what lies beyond d is zero
  int64_t key_blocks;  // of kKeyBlock keys; those beyond s are zero

  AttentionSizes(const Tensor& q, const Tensor& k)
      : s(q.dim(0)),
        b(q.dim(1)),
        heads(q.dim(2)),
        kv_heads(k.dim(2)),
        d(q.dim(3)),
        width((d + kBlockColumns - 1) / kBlockColumns * kBlockColumns),
        key_blocks((s + kKeyBlock - 1) / kKeyBlock) {}

  int64_t group() const { return heads / kv_heads; }
  int64_t padded() const { return key_blocks * kKeyBlock; }
  // Floats of all keys of a head, and of one block of queries.
  int64_t keys() const { return padded() * width; }
  int64_t queries() const { return kQueryBlock * width; }
};

// Hands out pieces of a task's scratch, each a whole number of vectors.
struct ScratchCursor {
  float* next;

  float* Take(int64_t floats) {
    float* piece = next;
    next += floats;
    return piece;
  }
};

// The rows of one (sample, head) of a [s, b, heads, d] tensor.
template <typename T>
struct HeadRows {
  T* data;
  int64_t stride, d;

  T* row(int64_t i) const { return data + i * stride; }
};

inline int64_t HeadOffset(const Tensor& x, int64_t sample, int64_t head) {
  return sample * x.strides()[1] + head * x.strides()[2];
}
template <typename T>
HeadRows<const T> ReadHead(const Tensor& x, int64_t sample, int64_t head) {
  return {x.data<T>() + HeadOffset(x, sample, head), x.strides()[0], x.dim(3)};
}
template <typename T>
HeadRows<T> WriteHead(const Tensor& x, int64_t sample, int64_t head) {
  return {x.mutable_data<T>() + HeadOffset(x, sample, head), x.strides()[0], x.dim(3)};
}

// Rows [begin, begin + rows) times `factor`, `width` floats apart, padded with zeros.
template <typename T>
void LoadRows(const HeadRows<const T>& from, int64_t begin, int64_t rows, int64_t width,
              float factor, float* to) {
  for (int64_t i = 0; i < rows; ++i) {
    float* row = to + i * width;
    LoadFloats(from.row(begin + i), from.d, row);
    if (factor != 1.0f) {
      for (int64_t c = 0; c < from.d; ++c) row[c] *= factor;
    }
    std::fill(row + from.d, row + width, 0.0f);
  }
}

// Row i times factors[i], or times `factor` where `factors` is null; `from` is overwritten.
template <typename T>
void StoreRows(float* from, int64_t rows, int64_t width, const float* factors, float factor,
               const HeadRows<T>& to, int64_t begin) {
  for (int64_t i = 0; i < rows; ++i) {
    float* row = from + i * width;
    const float times = factors == nullptr ? factor : factors[i];
    for (int64_t c = 0; c < to.d; ++c) row[c] *= times;
    StoreFloats(row, to.d, to.row(begin + i));
  }
}

// All rows of a head, and zeros for what its last block of keys lacks.
template <typename T>
void LoadKeys(const HeadRows<const T>& from, const AttentionSizes& sizes, float* to) {
  LoadRows(from, 0, sizes.s, sizes.width, 1.0f, to);
  std::fill(to + sizes.s * sizes.width, to + sizes.keys(), 0.0f);
}

// Each block of keys transposed: [key_blocks][width][kKeyBlock].
inline void TransposeKeys(const float* keys, const AttentionSizes& sizes, float* to) {
  const int64_t width = sizes.width;
  for (int64_t block = 0; block < sizes.key_blocks; ++block) {
    const float* from = keys + block * kKeyBlock * width;
    for (int64_t c = 0; c < width; ++c, to += kKeyBlock) {
      for (int64_t j = 0; j < kKeyBlock; ++j) to[j] = from[j * width + c];
    }
  }
}

}  // namespace forerun::cpu
