// SPDX-License-Identifier: Apache-2.0
#include "core/ops/elementwise.h"

#include "core/base/check.h"

namespace forerun {
namespace {

void CheckTerms(const Tensor& a, const Tensor& b) {
  FR_CHECK(IsFloating(a.dtype())) << "Add of " << a.dtype();
  FR_CHECK_EQ(a.shape(), b.shape()) << "terms of Add";
  FR_CHECK_EQ(a.dtype(), b.dtype()) << "terms of Add";
  FR_CHECK(a.has_contiguous_rows() && b.has_contiguous_rows())
      << "Add of strides " << a.strides() << " and " << b.strides();
}

}  // namespace

Tensor Add(const OpContext& context, const Tensor& a, const Tensor& b) {
  CheckTerms(a, b);
  Tensor out = context.Empty(a.shape(), a.dtype());
  context.kernels->elementwise->Add(context, a, b, out);
  return out;
}

void AddInto(const OpContext& context, const Tensor& a, const Tensor& out) {
  CheckTerms(a, out);
  context.kernels->elementwise->Add(context, a, out, out);
}

Tensor AddRow(const OpContext& context, const Tensor& x, const Tensor& row) {
  FR_CHECK(IsFloating(x.dtype())) << "AddRow of " << x.dtype();
  FR_CHECK_GE(x.rank(), 1) << "AddRow to a scalar";
  FR_CHECK(x.has_contiguous_rows()) << "AddRow to strides " << x.strides();
  FR_CHECK_EQ(row.shape(), Shape{x.dim(-1)}) << "row added to " << x.shape();
  FR_CHECK(row.is_contiguous()) << "row added of strides " << row.strides();
  FR_CHECK_EQ(row.dtype(), x.dtype()) << "row and rows of AddRow";
  Tensor out = context.Empty(x.shape(), x.dtype());
  context.kernels->elementwise->AddRow(context, x, row, out);
  return out;
}

Tensor Scale(const OpContext& context, const Tensor& x, float factor) {
  FR_CHECK(IsFloating(x.dtype())) << "Scale of " << x.dtype();
  FR_CHECK(x.has_contiguous_rows()) << "Scale of strides " << x.strides();
  Tensor out = context.Empty(x.shape(), x.dtype());
  context.kernels->elementwise->Scale(context, x, factor, out);
  return out;
}

}  // namespace forerun
