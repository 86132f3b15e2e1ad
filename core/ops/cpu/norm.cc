// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/parallel_for.h"
#include "core/ops/cpu/vectors.h"

namespace forerun::cpu {
namespace {

constexpr int64_t kElementsAThread = 1 << 14;
constexpr int64_t kColumnGrain = 64;  // columns: no two threads write to one cache line
constexpr int64_t kRowBlock = 64;     // rows: sums of blocks are added, so errors grow slowly

template <typename T>
struct Matrix {
  const T* data;
  int64_t rows, columns, stride;

  explicit Matrix(const Tensor& x) {
    const Tensor matrix = x.AsMatrix();
    data = matrix.data<T>();
    rows = matrix.dim(0);
    columns = matrix.dim(1);
    stride = matrix.strides()[0];
  }
  const T* row(int64_t r) const { return data + r * stride; }
};

template <typename T>
std::vector<float> Floats(const Tensor& weight) {
  std::vector<float> values(weight.numel());
  LoadFloats(weight.data<T>(), weight.numel(), values.data());
  return values;
}

template <typename Body>
void ForRows(int64_t rows, int64_t columns, Body body) {
  ParallelFor(rows, std::max<int64_t>(1, kElementsAThread / columns), body);
}

// Sums over a row in kLanes partial sums, lane i % kLanes taking element i, added as a tree: the
// order depends on n alone.
template <typename Term>
float RowSum(int64_t n, Term term) {
  constexpr int kLanes = 16;
  float partial[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) partial[lane] += term(i + lane);
  }
  for (int lane = 0; i < n; ++i, ++lane) partial[lane] += term(i);
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) partial[lane] += partial[lane + width];
  }
  return partial[0];
}

// y = (x - center) * scale * gamma + beta over a row; beta may be null.
template <typename T>
void ScaleRow(const float* x, float center, float scale, const float* gamma, const float* beta,
              int64_t n, float* buffer, T* y) {
  if (beta != nullptr) {
    for (int64_t i = 0; i < n; ++i) buffer[i] = (x[i] - center) * scale * gamma[i] + beta[i];
  } else {
    for (int64_t i = 0; i < n; ++i) buffer[i] = x[i] * scale * gamma[i];
  }
  StoreFloats(buffer, n, y);
}

template <typename T>
void LayerNormOf(const Tensor& x, const Tensor& gamma, const Tensor& beta, float epsilon,
                 const LayerNormResult& out) {
  const Matrix<T> in(x);
  const int64_t n = in.columns;
  const std::vector<float> scale = Floats<T>(gamma), shift = Floats<T>(beta);
  T* y = out.y.mutable_data<T>();
  float* means = out.mean.mutable_data<float>();
  float* rstds = out.rstd.mutable_data<float>();
  ForRows(in.rows, n, [&](int64_t begin, int64_t end) {
    std::vector<float> loaded(n), stored(n);
    for (int64_t r = begin; r < end; ++r) {
      const float* row = AsFloats(in.row(r), n, loaded.data());
      const float mean = RowSum(n, [row](int64_t i) { return row[i]; }) / n;
      const float variance =
          RowSum(n, [row, mean](int64_t i) { return (row[i] - mean) * (row[i] - mean); }) / n;
      means[r] = mean;
      rstds[r] = 1.0f / std::sqrt(variance + epsilon);
      ScaleRow(row, mean, rstds[r], scale.data(), shift.data(), n, stored.data(), y + r * n);
    }
  });
}

template <typename T>
void RmsNormOf(const Tensor& x, const Tensor& gamma, float epsilon, const RmsNormResult& out) {
  const Matrix<T> in(x);
  const int64_t n = in.columns;
  const std::vector<float> scale = Floats<T>(gamma);
  T* y = out.y.mutable_data<T>();
  float* rrms = out.rrms.mutable_data<float>();
  ForRows(in.rows, n, [&](int64_t begin, int64_t end) {
    std::vector<float> loaded(n), stored(n);
    for (int64_t r = begin; r < end; ++r) {
      const float* row = AsFloats(in.row(r), n, loaded.data());
      const float square = RowSum(n, [row](int64_t i) { return row[i] * row[i]; }) / n;
      rrms[r] = 1.0f / std::sqrt(square + epsilon);
      ScaleRow(row, 0.0f, rrms[r], scale.data(), nullptr, n, stored.data(), y + r * n);
    }
  });
}

// dx of one row: scale * (g - mean(g) - normalized * mean(g * normalized)), g = dy * gamma,
// normalized = (x - center) * scale; without the term mean(g) where the center is not the row's
// mean but a constant.
template <typename T>
void RowBackward(const float* x, float center, float scale, bool centered, const float* gamma,
                 const float* dy, int64_t n, float* buffer, T* dx) {
  const float mean_g = centered ? RowSum(n, [=](int64_t i) { return dy[i] * gamma[i]; }) / n : 0.0f;
  const float mean_gx =
      RowSum(n, [=](int64_t i) { return dy[i] * gamma[i] * ((x[i] - center) * scale); }) / n;
  for (int64_t i = 0; i < n; ++i) {
    const float normalized = (x[i] - center) * scale;
    buffer[i] = scale * (dy[i] * gamma[i] - mean_g - normalized * mean_gx);
  }
  StoreFloats(buffer, n, dx);
}

// `mean` is null for RMSNorm.
template <typename T>
void BackwardInputOf(const Tensor& x, const Tensor& gamma, const float* mean, const float* scale,
                     const Tensor& dy, const Tensor& dx) {
  const Matrix<T> in(x), gradient(dy);
  const int64_t n = in.columns;
  const std::vector<float> weight = Floats<T>(gamma);
  T* out = dx.mutable_data<T>();
  ForRows(in.rows, n, [&](int64_t begin, int64_t end) {
    std::vector<float> x_row(n), dy_row(n), stored(n);
    for (int64_t r = begin; r < end; ++r) {
      const bool centered = mean != nullptr;
      RowBackward(AsFloats(in.row(r), n, x_row.data()), centered ? mean[r] : 0.0f, scale[r],
                  centered, weight.data(), AsFloats(gradient.row(r), n, dy_row.data()), n,
                  stored.data(), out + r * n);
    }
  });
}

// Sums over rows of some columns, a block of rows at a time.
class ColumnSums {
 public:
  explicit ColumnSums(int64_t columns) : block_(columns), total_(columns) {}
  float* block() { return block_.data(); }
  void EndBlock() {
    for (size_t c = 0; c < total_.size(); ++c) {
      total_[c] += block_[c];
      block_[c] = 0.0f;
    }
  }
  void Store(bool accumulate, float* out) const {
    for (size_t c = 0; c < total_.size(); ++c) {
      out[c] = accumulate ? out[c] + total_[c] : total_[c];
    }
  }

 private:
  std::vector<float> block_, total_;
};

// A weight gradient to be stored; absent where the tensor is undefined.
struct WeightGradient {
  float* data;
  bool accumulate;
  WeightGradient(const Tensor& gradient, bool accumulate)
      : data(gradient.defined() ? gradient.mutable_data<float>() : nullptr),
        accumulate(accumulate) {}
};

// Columns are split over threads, so the order of a column's sum depends on the rows alone.
// `mean` is null for RMSNorm.
template <typename T>
void BackwardWeightOf(const Tensor& x, const float* mean, const float* scale, const Tensor& dy,
                      const WeightGradient& dgamma, const WeightGradient& dbeta) {
  const Matrix<T> in(x), gradient(dy);
  ParallelFor(in.columns, kColumnGrain, [&](int64_t first, int64_t last) {
    const int64_t n = last - first;
    std::vector<float> x_row(n), dy_row(n);
    ColumnSums gamma_sums(n), beta_sums(n);
    for (int64_t r = 0; r < in.rows; ++r) {
      const float* values = AsFloats(in.row(r) + first, n, x_row.data());
      const float* dys = AsFloats(gradient.row(r) + first, n, dy_row.data());
      const float center = mean != nullptr ? mean[r] : 0.0f, factor = scale[r];
      float* gammas = gamma_sums.block();
      float* betas = beta_sums.block();
      for (int64_t c = 0; c < n; ++c) {
        gammas[c] += dys[c] * ((values[c] - center) * factor);
        betas[c] += dys[c];
      }
      if ((r + 1) % kRowBlock == 0 || r + 1 == in.rows) {
        gamma_sums.EndBlock();
        beta_sums.EndBlock();
      }
    }
    if (dgamma.data != nullptr) gamma_sums.Store(dgamma.accumulate, dgamma.data + first);
    if (dbeta.data != nullptr) beta_sums.Store(dbeta.accumulate, dbeta.data + first);
  });
}

class CpuNorm final : public NormKernels {
 public:
  void LayerNorm(const OpContext&, const Tensor& x, const Tensor& gamma, const Tensor& beta,
                 float epsilon, const LayerNormResult& out) const override {
    VisitStored(x.dtype(),
                [&](auto type) { LayerNormOf<decltype(type)>(x, gamma, beta, epsilon, out); });
  }

  void LayerNormBackwardInput(const OpContext&, const Tensor& x, const Tensor& gamma,
                              const Tensor& mean, const Tensor& rstd, const Tensor& dy,
                              const Tensor& dx) const override {
    VisitStored(x.dtype(), [&](auto type) {
      BackwardInputOf<decltype(type)>(x, gamma, mean.data<float>(), rstd.data<float>(), dy, dx);
    });
  }

  void LayerNormBackwardWeight(const OpContext&, const Tensor& x, const Tensor& mean,
                               const Tensor& rstd, const Tensor& dy, bool accumulate_gamma,
                               const Tensor& dgamma, bool accumulate_beta,
                               const Tensor& dbeta) const override {
    VisitStored(x.dtype(), [&](auto type) {
      BackwardWeightOf<decltype(type)>(x, mean.data<float>(), rstd.data<float>(), dy,
                                       WeightGradient(dgamma, accumulate_gamma),
                                       WeightGradient(dbeta, accumulate_beta));
    });
  }

  void RmsNorm(const OpContext&, const Tensor& x, const Tensor& gamma, float epsilon,
               const RmsNormResult& out) const override {
    VisitStored(x.dtype(), [&](auto type) { RmsNormOf<decltype(type)>(x, gamma, epsilon, out); });
  }

  void RmsNormBackwardInput(const OpContext&, const Tensor& x, const Tensor& gamma,
                            const Tensor& rrms, const Tensor& dy, const Tensor& dx) const override {
    VisitStored(x.dtype(), [&](auto type) {
      BackwardInputOf<decltype(type)>(x, gamma, nullptr, rrms.data<float>(), dy, dx);
    });
  }

  void RmsNormBackwardWeight(const OpContext&, const Tensor& x, const Tensor& rrms,
                             const Tensor& dy, bool accumulate,
                             const Tensor& dgamma) const override {
    VisitStored(x.dtype(), [&](auto type) {
      BackwardWeightOf<decltype(type)>(x, nullptr, rrms.data<float>(), dy,
                                       WeightGradient(dgamma, accumulate),
                                       WeightGradient(Tensor(), false));
    });
  }
};

}  // namespace

const NormKernels& Norm() {
  static const CpuNorm kernels;
  return kernels;
}

}  // namespace forerun::cpu
