// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

namespace forerun {

// The same values in another floating dtype, rounded to nearest even. x is contiguous.
Tensor Cast(const OpContext& context, const Tensor& x, DType dtype);
void CastInto(const OpContext& context, const Tensor& x, const Tensor& out);

class CastKernels {
 public:
  virtual ~CastKernels() = default;
  virtual void Cast(const OpContext& context, const Tensor& x, const Tensor& out) const = 0;
};

}  // namespace forerun
