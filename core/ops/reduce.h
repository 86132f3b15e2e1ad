// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

namespace forerun {

// sums[c] (+)= sum over rows of x[r, c]: the gradient of a bias. x: matrix; sums: fp32 [columns].
void SumRows(const OpContext& context, const Tensor& x, bool accumulate, const Tensor& sums);
// Mean of all elements of a contiguous tensor, a one-element fp32 tensor (sum in double).
Tensor Mean(const OpContext& context, const Tensor& x);

class ReduceKernels {
 public:
  virtual ~ReduceKernels() = default;
  virtual void SumRows(const OpContext& context, const Tensor& x, bool accumulate,
                       const Tensor& sums) const = 0;
  virtual void Mean(const OpContext& context, const Tensor& x, const Tensor& mean) const = 0;
};

}  // namespace forerun
