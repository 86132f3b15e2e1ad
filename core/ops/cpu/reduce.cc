// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/reduce.h"

#include <algorithm>
#include <vector>

#include "core/base/parallel_for.h"
#include "core/ops/cpu/vectors.h"

namespace forerun::cpu {
namespace {

constexpr int64_t kColumnGrain = 64;  // columns: no two threads write to one cache line
constexpr int64_t kRowBlock = 64;     // rows: sums of blocks are added, so errors grow slowly
constexpr int64_t kMeanBlock = 4096;  // elements

// block[c] = sum of rows [begin, end) of x at columns first + c.
template <typename T>
void SumBlock(const T* x, int64_t stride, int64_t begin, int64_t end, int64_t columns, float* row,
              float* block) {
  std::fill(block, block + columns, 0.0f);
  for (int64_t r = begin; r < end; ++r) {
    const float* values = AsFloats(x + r * stride, columns, row);
    for (int64_t c = 0; c < columns; ++c) block[c] += values[c];
  }
}

// Columns are split over threads, so the order of a column's sum depends on the rows alone.
template <typename T>
void SumRowsOf(const Tensor& x, bool accumulate, float* sums) {
  const int64_t rows = x.dim(0), stride = x.strides()[0];
  const T* data = x.data<T>();
  ParallelFor(x.dim(1), kColumnGrain, [&](int64_t first, int64_t last) {
    const int64_t columns = last - first;
    std::vector<float> row(columns), block(columns), total(columns, 0.0f);
    for (int64_t begin = 0; begin < rows; begin += kRowBlock) {
      SumBlock(data + first, stride, begin, std::min(rows, begin + kRowBlock), columns, row.data(),
               block.data());
      for (int64_t c = 0; c < columns; ++c) total[c] += block[c];
    }
    float* out = sums + first;
    for (int64_t c = 0; c < columns; ++c) out[c] = accumulate ? out[c] + total[c] : total[c];
  });
}

// In eight partial sums, for the vector unit, added in order.
double SumInDouble(const float* x, int64_t n) {
  double partial[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int lane = 0; lane < 8; ++lane) partial[lane] += static_cast<double>(x[i + lane]);
  }
  for (int lane = 0; i < n; ++i, ++lane) partial[lane] += static_cast<double>(x[i]);
  double sum = 0.0;
  for (double p : partial) sum += p;
  return sum;
}

template <typename T>
float MeanOf(const T* x, int64_t numel) {
  const int64_t blocks = (numel + kMeanBlock - 1) / kMeanBlock;
  std::vector<double> sums(blocks);
  ParallelFor(blocks, /*grain=*/8, [&](int64_t begin, int64_t end) {
    std::vector<float> buffer(kMeanBlock);
    for (int64_t b = begin; b < end; ++b) {
      const int64_t count = std::min(kMeanBlock, numel - b * kMeanBlock);
      sums[b] = SumInDouble(AsFloats(x + b * kMeanBlock, count, buffer.data()), count);
    }
  });
  double sum = 0.0;
  for (double s : sums) sum += s;
  return static_cast<float>(sum / static_cast<double>(numel));
}

class CpuReduce final : public ReduceKernels {
 public:
  void SumRows(const OpContext&, const Tensor& x, bool accumulate,
               const Tensor& sums) const override {
    VisitStored(x.dtype(), [&](auto type) {
      SumRowsOf<decltype(type)>(x, accumulate, sums.mutable_data<float>());
    });
  }

  void Mean(const OpContext&, const Tensor& x, const Tensor& mean) const override {
    VisitStored(x.dtype(), [&](auto type) {
      *mean.mutable_data<float>() = MeanOf(x.data<decltype(type)>(), x.numel());
    });
  }
};

}  // namespace

const ReduceKernels& Reduce() {
  static const CpuReduce kernels;
  return kernels;
}

}  // namespace forerun::cpu
