// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/base/parallel_for.h"
#include "core/ops/cpu/vectors.h"
#include "core/tensor/tensor.h"

// Elementwise loops: out[r, c] = f(in0[r, c], in1[r, c], ...) in float, for operands of one
// element type, over the loop threads: MapRows, or MapRuns with a loop of one's own. One piece of
// code serves every element, so a result depends on no position, length or thread count.
namespace forerun::cpu {

// An operand: a matrix whose rows are `stride` elements apart; stride 0 repeats one row.
template <typename T>
struct Rows {
  T* data;
  int64_t rows, columns, stride;

  bool contiguous() const { return stride == columns || rows == 1; }
};

template <typename T>
Rows<const T> ReadRows(const Tensor& x) {
  const Tensor matrix = x.rank() == 0 ? x.View({1, 1}) : x.AsMatrix();
  return {matrix.data<T>(), matrix.dim(0), matrix.dim(1), matrix.strides()[0]};
}

template <typename T>
Rows<T> WriteRows(const Tensor& x) {
  const Rows<const T> rows = ReadRows<T>(x);
  return {x.mutable_data<T>(), rows.rows, rows.columns, rows.stride};
}

constexpr int64_t kMapBlock = 512;  // floats of each operand at a time: fits the L1
constexpr int64_t kElementsAThread = 1 << 14;

// run(count, out, in...) over floats. out may be one of the inputs. Float operands are taken in
// place, 16-bit ones block by block.
template <typename T, typename Run, typename... In>
void RunOnFloats(int64_t n, T* out, const Run& run, const In*... in) {
  if constexpr (std::is_same_v<T, float>) {
    run(n, out, in...);
  } else {
    alignas(64) float values[sizeof...(In)][kMapBlock];
    const auto run_block = [&]<size_t... I>(std::index_sequence<I...>, int64_t begin,
                                            int64_t count) {
      (LoadFloats(in + begin, count, values[I]), ...);
      run(count, values[0], values[I]...);
      StoreFloats(values[0], count, out + begin);
    };
    for (int64_t begin = 0; begin < n; begin += kMapBlock) {
      run_block(std::index_sequence_for<In...>(), begin, std::min(kMapBlock, n - begin));
    }
  }
}

// Calls run(row, column, count) on pieces that cover `rows` rows of `columns`, over the threads.
template <typename Run>
void ForPieces(int64_t rows, int64_t columns, const Run& run) {
  if (rows == 1) {
    ParallelFor(columns, kElementsAThread,
                [&](int64_t begin, int64_t end) { run(int64_t{0}, begin, end - begin); });
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kElementsAThread / std::max<int64_t>(1, columns));
  ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) run(row, int64_t{0}, columns);
  });
}

// run(count, out, in...) is given runs of floats; out may be one of the inputs.
template <typename T, typename Run, typename... In>
void MapRuns(const Rows<T>& out, const Run& run, const Rows<In>&... in) {
  const bool flat = out.contiguous() && (in.contiguous() && ...);
  const int64_t rows = flat ? 1 : out.rows;
  const int64_t columns = flat ? out.rows * out.columns : out.columns;
  ForPieces(rows, columns, [&](int64_t row, int64_t column, int64_t count) {
    RunOnFloats(count, out.data + row * out.stride + column, run,
                (in.data + row * in.stride + column)...);
  });
}

template <typename T, typename F, typename... In>
void MapRows(const Rows<T>& out, const F& f, const Rows<In>&... in) {
  const auto run = [&f](int64_t n, float* to, const auto*... from) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = f(from[i]...);
  };
  MapRuns(out, run, in...);
}

}  // namespace forerun::cpu
