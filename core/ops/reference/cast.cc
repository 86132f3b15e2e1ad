// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference/cast.h"

#include "core/ops/reference/elements.h"

namespace forerun::reference {
namespace {

class ReferenceCast final : public CastKernels {
 public:
  void Cast(const OpContext&, const Tensor& x, const Tensor& out) const override {
    const Elements from(x), to(out);
    for (int64_t i = 0; i < x.numel(); ++i) to.Set(i, from[i]);
  }
};

}  // namespace

const CastKernels& Cast() {
  static const ReferenceCast kernels;
  return kernels;
}

}  // namespace forerun::reference
