// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/elementwise.h"

#include "core/ops/cpu/map_rows.h"
#include "core/ops/cpu/vectors.h"

namespace forerun::cpu {
namespace {

constexpr auto kSum = [](float a, float b) { return a + b; };

class CpuElementwise final : public ElementwiseKernels {
 public:
  void Add(const OpContext&, const Tensor& a, const Tensor& b, const Tensor& out) const override {
    VisitStored(out.dtype(), [&](auto type) {
      using T = decltype(type);
      MapRows(WriteRows<T>(out), kSum, ReadRows<T>(a), ReadRows<T>(b));
    });
  }

  void AddRow(const OpContext&, const Tensor& x, const Tensor& row,
              const Tensor& out) const override {
    VisitStored(out.dtype(), [&](auto type) {
      using T = decltype(type);
      const Rows<T> to = WriteRows<T>(out);
      const Rows<const T> repeated{row.data<T>(), to.rows, to.columns, /*stride=*/0};
      MapRows(to, kSum, ReadRows<T>(x), repeated);
    });
  }

  void Scale(const OpContext&, const Tensor& x, float factor, const Tensor& out) const override {
    VisitStored(out.dtype(), [&](auto type) {
      using T = decltype(type);
      MapRows(
          WriteRows<T>(out), [factor](float value) { return value * factor; }, ReadRows<T>(x));
    });
  }
};

}  // namespace

const ElementwiseKernels& Elementwise() {
  static const CpuElementwise kernels;
  return kernels;
}

}  // namespace forerun::cpu
