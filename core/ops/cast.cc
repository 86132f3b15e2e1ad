// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cast.h"

#include "core/base/check.h"

namespace forerun {

Tensor Cast(const OpContext& context, const Tensor& x, DType dtype) {
  Tensor out = context.Empty(x.shape(), dtype);
  CastInto(context, x, out);
  return out;
}

void CastInto(const OpContext& context, const Tensor& x, const Tensor& out) {
  FR_CHECK(IsFloating(x.dtype()) && IsFloating(out.dtype()))
      << "Cast of " << x.dtype() << " to " << out.dtype();
  FR_CHECK_EQ(x.shape(), out.shape()) << "input and result of Cast";
  FR_CHECK(x.is_contiguous() && out.is_contiguous()) << "Cast needs contiguous tensors";
  context.kernels->cast->Cast(context, x, out);
}

}  // namespace forerun
