// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference/reduce.h"

#include "core/ops/reference/elements.h"

namespace forerun::reference {
namespace {

class ReferenceReduce final : public ReduceKernels {
 public:
  void SumRows(const OpContext&, const Tensor& x, bool accumulate,
               const Tensor& sums) const override {
    const Elements from(x), to(sums);
    const int64_t rows = x.dim(0), columns = x.dim(1);
    for (int64_t c = 0; c < columns; ++c) {
      double sum = accumulate ? to[c] : 0.0;
      for (int64_t r = 0; r < rows; ++r) sum += from[r * columns + c];
      to.Set(c, sum);
    }
  }

  void Mean(const OpContext&, const Tensor& x, const Tensor& mean) const override {
    const Elements from(x), to(mean);
    double sum = 0.0;
    for (int64_t i = 0; i < x.numel(); ++i) sum += from[i];
    to.Set(0, sum / static_cast<double>(x.numel()));
  }
};

}  // namespace

const ReduceKernels& Reduce() {
  static const ReferenceReduce kernels;
  return kernels;
}

}  // namespace forerun::reference
