// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference/norm.h"

#include <cmath>

#include "core/ops/reference/elements.h"

namespace forerun::reference {
namespace {

// Means over one row of n elements, at index `first` of the row-major order.
double RowMean(const Elements& x, int64_t first, int64_t n) {
  double sum = 0.0;
  for (int64_t i = first; i < first + n; ++i) sum += x[i];
  return sum / static_cast<double>(n);
}

double RowMeanSquare(const Elements& x, int64_t first, int64_t n, double center) {
  double sum = 0.0;
  for (int64_t i = first; i < first + n; ++i) sum += (x[i] - center) * (x[i] - center);
  return sum / static_cast<double>(n);
}

// dx of one row of y = (x - center) * scale * gamma, where scale is the inverse root mean square
// of x - center; `centered` tells whether the center is the row's mean, thus depends on x.
void RowBackward(const Elements& x, const Elements& gamma, const Elements& dy, int64_t first,
                 int64_t n, bool centered, double center, double scale, const Elements& dx) {
  double mean_g = 0.0, mean_gx = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    const double g = dy[first + i] * gamma[i];
    mean_g += centered ? g / static_cast<double>(n) : 0.0;
    mean_gx += g * (x[first + i] - center) * scale / static_cast<double>(n);
  }
  for (int64_t i = 0; i < n; ++i) {
    const double normalized = (x[first + i] - center) * scale;
    dx.Set(first + i, scale * (dy[first + i] * gamma[i] - mean_g - normalized * mean_gx));
  }
}

// gradient[c] (+)= sum over rows of dy * term, where term is the normalised x, or one.
template <typename Term>
void SumOverRows(const Elements& dy, int64_t rows, int64_t n, bool accumulate,
                 const Tensor& gradient, Term term) {
  const Elements out(gradient);
  for (int64_t c = 0; c < n; ++c) {
    double sum = accumulate ? out[c] : 0.0;
    for (int64_t r = 0; r < rows; ++r) sum += dy[r * n + c] * term(r, r * n + c);
    out.Set(c, sum);
  }
}

class ReferenceNorm final : public NormKernels {
 public:
  void LayerNorm(const OpContext&, const Tensor& x, const Tensor& gamma, const Tensor& beta,
                 float epsilon, const LayerNormResult& out) const override {
    const Elements from(x), scale(gamma), shift(beta), y(out.y), means(out.mean), rstds(out.rstd);
    const int64_t n = x.dim(-1);
    for (int64_t r = 0; r < x.numel() / n; ++r) {
      const double mean = RowMean(from, r * n, n);
      const double rstd = 1.0 / std::sqrt(RowMeanSquare(from, r * n, n, mean) + epsilon);
      for (int64_t c = 0; c < n; ++c) {
        y.Set(r * n + c, (from[r * n + c] - mean) * rstd * scale[c] + shift[c]);
      }
      means.Set(r, mean);
      rstds.Set(r, rstd);
    }
  }

  void LayerNormBackwardInput(const OpContext&, const Tensor& x, const Tensor& gamma,
                              const Tensor& mean, const Tensor& rstd, const Tensor& dy,
                              const Tensor& dx) const override {
    const Elements from(x), scale(gamma), means(mean), rstds(rstd), gradient(dy), out(dx);
    const int64_t n = x.dim(-1);
    for (int64_t r = 0; r < x.numel() / n; ++r) {
      RowBackward(from, scale, gradient, r * n, n, /*centered=*/true, means[r], rstds[r], out);
    }
  }

  void LayerNormBackwardWeight(const OpContext&, const Tensor& x, const Tensor& mean,
                               const Tensor& rstd, const Tensor& dy, bool accumulate_gamma,
                               const Tensor& dgamma, bool accumulate_beta,
                               const Tensor& dbeta) const override {
    const Elements from(x), means(mean), rstds(rstd), gradient(dy);
    const int64_t n = x.dim(-1), rows = x.numel() / n;
    if (dgamma.defined()) {
      SumOverRows(gradient, rows, n, accumulate_gamma, dgamma,
                  [&](int64_t r, int64_t i) { return (from[i] - means[r]) * rstds[r]; });
    }
    if (dbeta.defined()) {
      SumOverRows(gradient, rows, n, accumulate_beta, dbeta, [](int64_t, int64_t) { return 1.0; });
    }
  }

  void RmsNorm(const OpContext&, const Tensor& x, const Tensor& gamma, float epsilon,
               const RmsNormResult& out) const override {
    const Elements from(x), scale(gamma), y(out.y), rrms(out.rrms);
    const int64_t n = x.dim(-1);
    for (int64_t r = 0; r < x.numel() / n; ++r) {
      const double factor = 1.0 / std::sqrt(RowMeanSquare(from, r * n, n, 0.0) + epsilon);
      for (int64_t c = 0; c < n; ++c) y.Set(r * n + c, from[r * n + c] * factor * scale[c]);
      rrms.Set(r, factor);
    }
  }

  void RmsNormBackwardInput(const OpContext&, const Tensor& x, const Tensor& gamma,
                            const Tensor& rrms, const Tensor& dy, const Tensor& dx) const override {
    const Elements from(x), scale(gamma), factors(rrms), gradient(dy), out(dx);
    const int64_t n = x.dim(-1);
    for (int64_t r = 0; r < x.numel() / n; ++r) {
      RowBackward(from, scale, gradient, r * n, n, /*centered=*/false, 0.0, factors[r], out);
    }
  }

  void RmsNormBackwardWeight(const OpContext&, const Tensor& x, const Tensor& rrms,
                             const Tensor& dy, bool accumulate,
                             const Tensor& dgamma) const override {
    if (!dgamma.defined()) return;
    const Elements from(x), factors(rrms), gradient(dy);
    const int64_t n = x.dim(-1);
    SumOverRows(gradient, x.numel() / n, n, accumulate, dgamma,
                [&](int64_t r, int64_t i) { return from[i] * factors[r]; });
  }
};

}  // namespace

const NormKernels& Norm() {
  static const ReferenceNorm kernels;
  return kernels;
}

}  // namespace forerun::reference
