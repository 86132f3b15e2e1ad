// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

namespace forerun {

// Any shape; a and b have one shape and dtype. Contiguous, or matrices with strided rows.
Tensor Add(const OpContext& context, const Tensor& a, const Tensor& b);
void AddInto(const OpContext& context, const Tensor& a, const Tensor& out);  // out += a
// out[r, c] = x[r, c] + row[c] for x seen as rows of its last dim.
Tensor AddRow(const OpContext& context, const Tensor& x, const Tensor& row);
Tensor Scale(const OpContext& context, const Tensor& x, float factor);

class ElementwiseKernels {
 public:
  virtual ~ElementwiseKernels() = default;
  // out may be a or b itself.
  virtual void Add(const OpContext& context, const Tensor& a, const Tensor& b,
                   const Tensor& out) const = 0;
  virtual void AddRow(const OpContext& context, const Tensor& x, const Tensor& row,
                      const Tensor& out) const = 0;
  virtual void Scale(const OpContext& context, const Tensor& x, float factor,
                     const Tensor& out) const = 0;
};

}  // namespace forerun
