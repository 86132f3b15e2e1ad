// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/parallel_for.h"
#include "core/ops/cpu/float_runs.h"
#include "core/ops/cpu/vectors.h"

namespace forerun::cpu {
namespace {

constexpr int64_t kElementsAThread = 1 << 12;
constexpr int64_t kBlock = 512;  // columns at a time
constexpr int kLanes = 16;       // partial results of a row, lane j % kLanes taking column j

// The rows of the logits and which of their columns count.
template <typename T>
struct Logits {
  const T* data;
  int64_t rows, columns, stride;
  int64_t first, valid;  // columns [0, valid) here are [first, first + valid) of the vocabulary

  Logits(const Tensor& x, const VocabularyRange& range)
      : data(x.data<T>()),
        rows(x.dim(0)),
        columns(x.dim(1)),
        stride(x.strides()[0]),
        first(range.first_column),
        valid(std::clamp<int64_t>(range.valid_columns - first, 0, columns)) {}
  const T* row(int64_t i) const { return data + i * stride; }
  // The column of `target` here, or -1.
  int64_t ColumnOf(int32_t target) const {
    const int64_t column = target - first;
    return column >= 0 && column < valid ? column : -1;
  }
};

template <typename Body>
void ForRows(int64_t rows, int64_t columns, Body body) {
  const int64_t grain = std::max<int64_t>(1, kElementsAThread / std::max<int64_t>(1, columns));
  ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

void MaxInto(const float* x, int64_t n, float lanes[kLanes]) {
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = x[j + lane] > lanes[lane] ? x[j + lane] : lanes[lane];
    }
  }
  for (int lane = 0; j < n; ++j, ++lane) lanes[lane] = std::max(lanes[lane], x[j]);
}

template <typename T>
float MaxOf(const T* x, int64_t n) {
  alignas(64) float buffer[kBlock], lanes[kLanes];
  std::fill(lanes, lanes + kLanes, -std::numeric_limits<float>::infinity());
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    MaxInto(AsFloats(x + begin, count, buffer), count, lanes);
  }
  return *std::max_element(lanes, lanes + kLanes);
}

float SumLanes(const float* x, int64_t n) {
  float lanes[kLanes] = {};
  int64_t j = 0;
  for (; j + kLanes <= n; j += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += x[j + lane];
  }
  for (int lane = 0; j < n; ++j, ++lane) lanes[lane] += x[j];
  float sum = 0.0f;
  for (float lane : lanes) sum += lane;
  return sum;
}

// Blocks are summed in double: a vocabulary has a hundred of them.
template <typename T>
float SumExp(const T* x, int64_t n, float largest) {
  alignas(64) float buffer[kBlock], exps[kBlock];
  double sum = 0.0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    ExpBelowRun(count, exps, AsFloats(x + begin, count, buffer), largest);
    sum += static_cast<double>(SumLanes(exps, count));
  }
  return static_cast<float>(sum);
}

// dlogits of one row: exp(x - largest) * scale, less dloss at the target.
template <typename T>
void RowBackward(const Logits<T>& logits, const T* x, float largest, float scale, int64_t target,
                 float dloss, T* out) {
  alignas(64) float buffer[kBlock], exps[kBlock];
  for (int64_t begin = 0; begin < logits.valid; begin += kBlock) {
    const int64_t count = std::min(kBlock, logits.valid - begin);
    ExpBelowRun(count, exps, AsFloats(x + begin, count, buffer), largest);
    for (int64_t j = 0; j < count; ++j) exps[j] *= scale;
    if (target >= begin && target < begin + count) exps[target - begin] -= dloss;
    StoreFloats(exps, count, out + begin);
  }
  std::fill(out + logits.valid, out + logits.columns, T(0.0f));
}

class CpuCrossEntropy final : public CrossEntropyKernels {
 public:
  void RowMax(const OpContext&, const Tensor& logits, const VocabularyRange& range,
              const Tensor& row_max) const override {
    float* out = row_max.mutable_data<float>();
    VisitStored(logits.dtype(), [&](auto type) {
      const Logits<decltype(type)> in(logits, range);
      ForRows(in.rows, in.columns, [&](int64_t i) { out[i] = MaxOf(in.row(i), in.valid); });
    });
  }

  void SumExpAndTarget(const OpContext&, const Tensor& logits, const Tensor& targets,
                       const Tensor& row_max, const VocabularyRange& range,
                       const Tensor& sums) const override {
    const float* largest = row_max.data<float>();
    const int32_t* target = targets.data<int32_t>();
    float* sum = sums.mutable_data<float>();
    float* at_target = sum + logits.dim(0);
    VisitStored(logits.dtype(), [&](auto type) {
      const Logits<decltype(type)> in(logits, range);
      ForRows(in.rows, in.columns, [&](int64_t i) {
        sum[i] = SumExp(in.row(i), in.valid, largest[i]);
        const int64_t column = in.ColumnOf(target[i]);
        at_target[i] = column < 0 ? 0.0f : static_cast<float>(in.row(i)[column]) - largest[i];
      });
    });
  }

  void Loss(const OpContext&, const Tensor& sums, const Tensor& loss) const override {
    const int64_t n = loss.numel();
    const float* sum = sums.data<float>();
    float* out = loss.mutable_data<float>();
    for (int64_t i = 0; i < n; ++i) out[i] = std::log(sum[i]) - sum[n + i];
  }

  void Backward(const OpContext&, const Tensor& logits, const Tensor& targets,
                const Tensor& row_max, const Tensor& sums, const Tensor& dloss,
                const VocabularyRange& range, const Tensor& dlogits) const override {
    const float* largest = row_max.data<float>();
    const float* sum = sums.data<float>();
    const float* gradient = dloss.data<float>();
    const int32_t* target = targets.data<int32_t>();
    VisitStored(logits.dtype(), [&](auto type) {
      using T = decltype(type);
      const Logits<T> in(logits, range);
      T* out = dlogits.mutable_data<T>();
      ForRows(in.rows, in.columns, [&](int64_t i) {
        RowBackward(in, in.row(i), largest[i], gradient[i] / sum[i], in.ColumnOf(target[i]),
                    gradient[i], out + i * in.columns);
      });
    });
  }
};

}  // namespace

const CrossEntropyKernels& CrossEntropy() {
  static const CpuCrossEntropy kernels;
  return kernels;
}

}  // namespace forerun::cpu
