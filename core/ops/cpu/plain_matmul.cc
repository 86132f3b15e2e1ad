// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/plain_matmul.h"

#include <algorithm>

#include "core/base/parallel_for.h"
#include "core/ops/cpu/block_product.h"
#include "core/ops/cpu/matmul_epilogue.h"
#include "core/ops/cpu/vectors.h"

namespace forerun::cpu {
namespace {

// A task makes tiles of kRows x kColumns, kDepth of the inner dim at a time; the packed blocks of
// both factors and the sums (0.45 MB) fit a core's second-level cache.
constexpr int64_t kRows = 96;
constexpr int64_t kColumns = 256;
constexpr int64_t kDepth = 256;
constexpr int64_t kScratch = kRows * kDepth + kDepth * kColumns + kRows * kColumns;  // floats

int64_t Ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }

// rows x columns of a stored matrix from (row, column) on, as floats `stride` apart.
template <typename T>
void PackRows(const Tensor& x, int64_t row, int64_t rows, int64_t column, int64_t columns,
              float* to, int64_t stride) {
  const T* from = x.data<T>() + row * x.strides()[0] + column;
  for (int64_t r = 0; r < rows; ++r) {
    LoadFloats(from + r * x.strides()[0], columns, to + r * stride);
  }
}

// The same transposed: element (r, c) of the block goes to to[c * stride + r]. Sixteen rows at a
// time, so that a cache line of the result is written at once.
template <typename T>
void PackTransposed(const Tensor& x, int64_t row, int64_t rows, int64_t column, int64_t columns,
                    float* to, int64_t stride) {
  const T* from = x.data<T>() + row * x.strides()[0] + column;
  alignas(64) float buffer[kBlockColumns][kDepth];
  for (int64_t begin = 0; begin < rows; begin += kBlockColumns) {
    const int64_t count = std::min(kBlockColumns, rows - begin);
    for (int64_t r = 0; r < count; ++r) {
      LoadFloats(from + (begin + r) * x.strides()[0], columns, buffer[r]);
    }
    for (int64_t c = 0; c < columns; ++c) {
      float* line = to + c * stride + begin;
      for (int64_t r = 0; r < count; ++r) line[r] = buffer[r][c];
    }
  }
}

struct Tile {
  int64_t row, rows, column, columns;
  int64_t width;  // columns rounded up to what BlockProduct takes; those beyond hold rubbish
};

template <typename T>
class PlainProduct {
 public:
  PlainProduct(const Tensor& a, const Tensor& b, const MatmulOptions& options, const Tensor& out)
      : a_(a),
        b_(b),
        options_(options),
        out_(out),
        k_(a.dim(options.transpose_a ? 0 : 1)),
        tiles_across_(Ceil(out.dim(1), kColumns)) {}

  int64_t tiles() const { return Ceil(out_.dim(0), kRows) * tiles_across_; }

  void MakeTile(int64_t index, float* scratch) const {
    const Tile tile = TileAt(index);
    float* sums = scratch + kRows * kDepth + kDepth * kColumns;
    if (options_.accumulate) LoadSums(tile, sums);
    for (int64_t p = 0; p < k_; p += kDepth) {
      AddBlock(tile, p, std::min(kDepth, k_ - p), p > 0 || options_.accumulate, scratch, sums);
    }
    if (options_.bias.defined()) AddBias(tile, sums);
    StoreSums(tile, sums);
  }

 private:
  Tile TileAt(int64_t index) const {
    Tile tile;
    tile.row = index / tiles_across_ * kRows;
    tile.column = index % tiles_across_ * kColumns;
    tile.rows = std::min(kRows, out_.dim(0) - tile.row);
    tile.columns = std::min(kColumns, out_.dim(1) - tile.column);
    tile.width = Ceil(tile.columns, kBlockColumns) * kBlockColumns;
    return tile;
  }

  // sums += op(a)[tile rows, p..] op(b)[p.., tile columns]
  void AddBlock(const Tile& tile, int64_t p, int64_t depth, bool accumulate, float* scratch,
                float* sums) const {
    float* left = scratch;
    float* right = scratch + kRows * kDepth;
    BlockView a{left, depth, 1};
    if (options_.transpose_a) {
      a = {left, 1, tile.rows};
      PackRows<T>(a_, p, depth, tile.row, tile.rows, left, tile.rows);
    } else {
      PackRows<T>(a_, tile.row, tile.rows, p, depth, left, depth);
    }
    if (options_.transpose_b) {
      PackTransposed<T>(b_, tile.column, tile.columns, p, depth, right, tile.width);
    } else {
      PackRows<T>(b_, p, depth, tile.column, tile.columns, right, tile.width);
    }
    for (int64_t r = 0; r < depth; ++r) {
      std::fill(right + r * tile.width + tile.columns, right + (r + 1) * tile.width, 0.0f);
    }
    BlockProduct(tile.rows, tile.width, depth, a, right, tile.width, accumulate, sums, kColumns);
  }

  void LoadSums(const Tile& tile, float* sums) const {
    VisitStored(out_.dtype(), [&](auto type) {
      PackRows<decltype(type)>(out_, tile.row, tile.rows, tile.column, tile.columns, sums,
                               kColumns);
    });
    for (int64_t r = 0; r < tile.rows; ++r) {
      std::fill(sums + r * kColumns + tile.columns, sums + r * kColumns + tile.width, 0.0f);
    }
  }

  void AddBias(const Tile& tile, float* sums) const {
    float buffer[kColumns];
    const float* bias = AsFloats(options_.bias.data<T>() + tile.column, tile.columns, buffer);
    for (int64_t r = 0; r < tile.rows; ++r) {
      float* row = sums + r * kColumns;
      for (int64_t c = 0; c < tile.columns; ++c) row[c] += bias[c];
    }
  }

  void StoreSums(const Tile& tile, const float* sums) const {
    VisitStored(out_.dtype(), [&](auto type) {
      auto* to = out_.mutable_data<decltype(type)>() + tile.row * out_.strides()[0] + tile.column;
      for (int64_t r = 0; r < tile.rows; ++r) {
        StoreFloats(sums + r * kColumns, tile.columns, to + r * out_.strides()[0]);
      }
    });
  }

  const Tensor& a_;
  const Tensor& b_;
  const MatmulOptions& options_;
  const Tensor& out_;
  const int64_t k_;
  const int64_t tiles_across_;
};

class PlainMatmulKernels final : public MatmulKernels {
 public:
  void Matmul(const OpContext& context, const Tensor& a, const Tensor& b,
              const MatmulOptions& options, const Tensor& out) const override {
    VisitStored(a.dtype(), [&](auto type) {
      const PlainProduct<decltype(type)> product(a, b, options, ProductTarget(options, out));
      const int64_t tiles = product.tiles(), parts = std::min<int64_t>(tiles, LoopThreads());
      const Tensor scratch = context.Empty({parts, kScratch}, DType::kF32);
      float* memory = scratch.mutable_data<float>();
      ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t part = begin; part < end; ++part) {
          for (int64_t tile = part; tile < tiles; tile += parts) {
            product.MakeTile(tile, memory + part * kScratch);
          }
        }
      });
    });
    Activate(context, options, out);
  }
};

}  // namespace

const MatmulKernels& PlainMatmul() {
  static const PlainMatmulKernels kernels;
  return kernels;
}

}  // namespace forerun::cpu
