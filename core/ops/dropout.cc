// SPDX-License-Identifier: Apache-2.0
#include "core/ops/dropout.h"

#include "core/base/check.h"

namespace forerun {

Tensor Dropout(const OpContext& context, const Tensor& x, const DropoutOptions& options) {
  FR_CHECK(IsFloating(x.dtype())) << "Dropout of " << x.dtype();
  FR_CHECK_GE(x.rank(), 1) << "Dropout of a scalar";
  FR_CHECK(options.p >= 0.0f && options.p < 1.0f) << "Dropout with probability " << options.p;
  FR_CHECK_EQ(options.global.rank(), x.rank()) << "global shape of Dropout of " << x.shape();
  FR_CHECK_EQ(options.offset.rank(), x.rank()) << "offset of Dropout of " << x.shape();
  for (int dim = 0; dim < x.rank(); ++dim) {
    FR_CHECK_LE(options.offset[dim] + x.dim(dim), options.global[dim])
        << x.shape() << " at " << options.offset << " lies outside " << options.global;
  }
  Tensor y = context.Empty(x.shape(), x.dtype());
  context.kernels->dropout->Dropout(context, x, options, y);
  return y;
}

}  // namespace forerun
