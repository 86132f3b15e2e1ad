// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference/dropout.h"

#include "core/ops/reference/elements.h"

namespace forerun::reference {
namespace {

// The row-major index in the global shape of element `index` of the box of shape `local`.
int64_t GlobalIndex(const DropoutOptions& options, const Shape& local, int64_t index) {
  int64_t global = 0, stride = 1;
  for (int dim = local.rank() - 1; dim >= 0; --dim) {
    global += (options.offset[dim] + index % local[dim]) * stride;
    stride *= options.global[dim];
    index /= local[dim];
  }
  return global;
}

class ReferenceDropout final : public DropoutKernels {
 public:
  void Dropout(const OpContext&, const Tensor& x, const DropoutOptions& options,
               const Tensor& y) const override {
    const Elements from(x), to(y);
    for (int64_t i = 0; i < x.numel(); ++i) {
      const int64_t index = GlobalIndex(options, x.shape(), i);
      const bool dropped = UniformAt(options.key, static_cast<uint64_t>(index)) < options.p;
      to.Set(i, dropped ? 0.0 : from[i] / (1.0 - static_cast<double>(options.p)));
    }
  }
};

}  // namespace

const DropoutKernels& Dropout() {
  static const ReferenceDropout kernels;
  return kernels;
}

}  // namespace forerun::reference
