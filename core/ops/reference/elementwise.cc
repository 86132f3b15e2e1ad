// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference/elementwise.h"

#include "core/ops/reference/elements.h"

namespace forerun::reference {
namespace {

class ReferenceElementwise final : public ElementwiseKernels {
 public:
  void Add(const OpContext&, const Tensor& a, const Tensor& b, const Tensor& out) const override {
    const Elements left(a), right(b), to(out);
    for (int64_t i = 0; i < out.numel(); ++i) to.Set(i, left[i] + right[i]);
  }

  void AddRow(const OpContext&, const Tensor& x, const Tensor& row,
              const Tensor& out) const override {
    const Elements from(x), added(row), to(out);
    const int64_t columns = x.dim(-1);
    for (int64_t i = 0; i < out.numel(); ++i) to.Set(i, from[i] + added[i % columns]);
  }

  void Scale(const OpContext&, const Tensor& x, float factor, const Tensor& out) const override {
    const Elements from(x), to(out);
    for (int64_t i = 0; i < out.numel(); ++i) to.Set(i, from[i] * static_cast<double>(factor));
  }
};

}  // namespace

const ElementwiseKernels& Elementwise() {
  static const ReferenceElementwise kernels;
  return kernels;
}

}  // namespace forerun::reference
