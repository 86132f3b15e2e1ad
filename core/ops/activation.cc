// SPDX-License-Identifier: Apache-2.0
#include "core/ops/activation.h"

#include "core/base/check.h"

namespace forerun {
namespace {

void CheckGelu(const Tensor& x, GeluKind kind) {
  FR_CHECK(kind != GeluKind::kNone) << "Gelu needs a kind";
  FR_CHECK(IsFloating(x.dtype())) << "Gelu of " << x.dtype();
  FR_CHECK(x.has_contiguous_rows()) << "Gelu of strides " << x.strides();
}

void CheckSwiglu(const Tensor& x) {
  FR_CHECK(IsFloating(x.dtype())) << "Swiglu of " << x.dtype();
  FR_CHECK(x.has_contiguous_rows()) << "Swiglu of strides " << x.strides();
}

void CheckSameForm(const Tensor& a, const Tensor& b, const char* what) {
  FR_CHECK_EQ(a.shape(), b.shape()) << what;
  FR_CHECK_EQ(a.dtype(), b.dtype()) << what;
  FR_CHECK(b.has_contiguous_rows()) << what << " of strides " << b.strides();
}

}  // namespace

Tensor Gelu(const OpContext& context, const Tensor& x, GeluKind kind) {
  CheckGelu(x, kind);
  Tensor y = context.Empty(x.shape(), x.dtype());
  context.kernels->activation->Gelu(context, x, kind, y);
  return y;
}

Tensor GeluBackward(const OpContext& context, const Tensor& x, const Tensor& dy, GeluKind kind) {
  CheckGelu(x, kind);
  CheckSameForm(x, dy, "input and output gradient of Gelu");
  Tensor dx = context.Empty(x.shape(), x.dtype());
  context.kernels->activation->GeluBackward(context, x, dy, kind, dx);
  return dx;
}

Shape SwigluShape(const Shape& x) {
  FR_CHECK_GE(x.rank(), 1) << "Swiglu of a scalar";
  FR_CHECK_EQ(x[-1] % 2, 0) << "Swiglu halves the last dim of " << x;
  Shape y = x;
  y.set(-1, x[-1] / 2);
  return y;
}

Tensor Swiglu(const OpContext& context, const Tensor& x) {
  CheckSwiglu(x);
  Tensor y = context.Empty(SwigluShape(x.shape()), x.dtype());
  context.kernels->activation->Swiglu(context, x, y);
  return y;
}

Tensor SwigluBackward(const OpContext& context, const Tensor& x, const Tensor& dy) {
  CheckSwiglu(x);
  FR_CHECK_EQ(dy.shape(), SwigluShape(x.shape())) << "output gradient of Swiglu of " << x.shape();
  FR_CHECK_EQ(dy.dtype(), x.dtype()) << "output gradient of Swiglu";
  FR_CHECK(dy.has_contiguous_rows()) << "output gradient of Swiglu of strides " << dy.strides();
  Tensor dx = context.Empty(x.shape(), x.dtype());
  context.kernels->activation->SwigluBackward(context, x, dy, dx);
  return dx;
}

}  // namespace forerun
