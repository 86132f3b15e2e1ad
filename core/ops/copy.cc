// SPDX-License-Identifier: Apache-2.0
#include "core/ops/copy.h"

#include "core/base/check.h"

namespace forerun {

void CopyInto(const OpContext& context, const Tensor& from, const Tensor& to) {
  FR_CHECK_EQ(from.shape(), to.shape()) << "source and destination of a copy";
  FR_CHECK_EQ(from.dtype(), to.dtype()) << "source and destination of a copy";
  context.kernels->copy->Copy(context, from, to);
}

Tensor Contiguous(const OpContext& context, const Tensor& x) {
  if (x.is_contiguous()) return x;
  Tensor out = context.Empty(x.shape(), x.dtype());
  CopyInto(context, x, out);
  return out;
}

void Fill(const OpContext& context, float value, const Tensor& out) {
  FR_CHECK(IsFloating(out.dtype())) << "Fill of " << out.dtype();
  context.kernels->copy->Fill(context, value, out);
}

}  // namespace forerun
