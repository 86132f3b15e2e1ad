// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

namespace forerun {

// Copies between tensors of one shape and dtype, strided at will on both sides.
void CopyInto(const OpContext& context, const Tensor& from, const Tensor& to);
Tensor Contiguous(const OpContext& context, const Tensor& x);  // x itself where it is already
// Every element becomes `value`, floating dtypes.
void Fill(const OpContext& context, float value, const Tensor& out);

class CopyKernels {
 public:
  virtual ~CopyKernels() = default;
  virtual void Copy(const OpContext& context, const Tensor& from, const Tensor& to) const = 0;
  virtual void Fill(const OpContext& context, float value, const Tensor& out) const = 0;
};

}  // namespace forerun
