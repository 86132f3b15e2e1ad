// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference/matmul.h"

#include <cmath>

#include "core/ops/reference/elements.h"

namespace forerun::reference {
namespace {

constexpr double kSqrtTwoOverPi = 0.797884560802865355879892119868763737;

double Activate(double x, GeluKind kind) {
  switch (kind) {
    case GeluKind::kTanh:
      return 0.5 * x * (1.0 + std::tanh(kSqrtTwoOverPi * (x + 0.044715 * x * x * x)));
    case GeluKind::kExact:
      return 0.5 * x * std::erfc(-x * std::sqrt(0.5));
    case GeluKind::kNone:
      break;
  }
  return x;
}

// op(x)[row, column]
double At(const Elements& x, const Shape& shape, bool transpose, int64_t row, int64_t column) {
  return transpose ? x[column * shape[1] + row] : x[row * shape[1] + column];
}

class ReferenceMatmul final : public MatmulKernels {
 public:
  void Matmul(const OpContext&, const Tensor& a, const Tensor& b, const MatmulOptions& options,
              const Tensor& out) const override {
    const Elements left(a), right(b), result(out), bias(options.bias),
        before(options.pre_activation);
    const int64_t m = out.dim(0), n = out.dim(1), k = a.dim(options.transpose_a ? 0 : 1);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = options.accumulate ? result[i * n + j] : 0.0;
        for (int64_t p = 0; p < k; ++p) {
          sum += At(left, a.shape(), options.transpose_a, i, p) *
                 At(right, b.shape(), options.transpose_b, p, j);
        }
        if (options.bias.defined()) sum += bias[j];
        if (options.pre_activation.defined()) before.Set(i * n + j, sum);
        result.Set(i * n + j, Activate(sum, options.gelu));
      }
    }
  }
};

}  // namespace

const MatmulKernels& Matmul() {
  static const ReferenceMatmul kernels;
  return kernels;
}

}  // namespace forerun::reference
