// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reduce.h"

#include "core/base/check.h"

namespace forerun {

void SumRows(const OpContext& context, const Tensor& x, bool accumulate, const Tensor& sums) {
  FR_CHECK(IsFloating(x.dtype())) << "SumRows of " << x.dtype();
  FR_CHECK_EQ(x.rank(), 2) << "SumRows takes a matrix, got " << x.shape();
  FR_CHECK(x.has_contiguous_rows()) << "SumRows of strides " << x.strides();
  FR_CHECK_EQ(sums.shape(), Shape{x.dim(1)}) << "sums of the rows of " << x.shape();
  FR_CHECK_EQ(sums.dtype(), DType::kF32) << "sums of rows";
  FR_CHECK(sums.is_contiguous()) << "sums of rows";
  context.kernels->reduce->SumRows(context, x, accumulate, sums);
}

Tensor Mean(const OpContext& context, const Tensor& x) {
  FR_CHECK(IsFloating(x.dtype())) << "Mean of " << x.dtype();
  FR_CHECK(x.is_contiguous()) << "Mean needs a contiguous tensor";
  FR_CHECK_GT(x.numel(), 0) << "Mean of no elements";
  Tensor mean = context.Empty({1}, DType::kF32);
  context.kernels->reduce->Mean(context, x, mean);
  return mean;
}

}  // namespace forerun
