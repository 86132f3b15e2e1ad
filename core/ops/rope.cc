// SPDX-License-Identifier: Apache-2.0
#include "core/ops/rope.h"

#include "core/base/check.h"

namespace forerun {

Tensor Rope(const OpContext& context, const Tensor& x, const RopeOptions& options) {
  FR_CHECK(IsFloating(x.dtype())) << "Rope of " << x.dtype();
  FR_CHECK_EQ(x.rank(), 4) << "Rope takes [s, b, heads, d], got " << x.shape();
  FR_CHECK_EQ(x.dim(3) % 2, 0) << "head dim of Rope";
  FR_CHECK(x.has_contiguous_rows()) << "Rope of strides " << x.strides();
  FR_CHECK_GT(options.base, 0.0) << "base of Rope";
  Tensor y = context.Empty(x.shape(), x.dtype());
  context.kernels->rope->Rope(context, x, options, y);
  return y;
}

}  // namespace forerun
