// SPDX-License-Identifier: Apache-2.0
#include "core/ops/matmul.h"

#include "core/base/check.h"

namespace forerun {
namespace {

void CheckOperands(const Tensor& a, const Tensor& b) {
  FR_CHECK(IsFloating(a.dtype())) << "matmul of " << a.dtype();
  FR_CHECK_EQ(a.dtype(), b.dtype()) << "factors of a matmul";
  for (const Tensor* factor : {&a, &b}) {
    FR_CHECK(factor->dim(1) == 1 || factor->strides()[1] == 1)
        << "the rows of a factor of a matmul must be contiguous: " << factor->shape();
  }
}

void CheckEpilogue(const Tensor& a, const Shape& product, const MatmulOptions& options) {
  const bool epilogue =
      options.bias.defined() || options.gelu != GeluKind::kNone || options.pre_activation.defined();
  FR_CHECK(!(options.accumulate && epilogue))
      << "a matmul that accumulates takes no bias and no activation";
  if (options.bias.defined()) {
    FR_CHECK_EQ(options.bias.shape(), Shape{product[1]}) << "bias of a matmul";
    FR_CHECK_EQ(options.bias.dtype(), a.dtype()) << "bias of a matmul";
  }
  if (options.pre_activation.defined()) {
    FR_CHECK(options.gelu != GeluKind::kNone) << "pre_activation of a matmul without activation";
    FR_CHECK_EQ(options.pre_activation.shape(), product) << "pre_activation of a matmul";
    FR_CHECK_EQ(options.pre_activation.dtype(), a.dtype()) << "pre_activation of a matmul";
    FR_CHECK(options.pre_activation.is_contiguous()) << "pre_activation of a matmul";
  }
}

}  // namespace

Shape MatmulShape(const Shape& a, const Shape& b, const MatmulOptions& options) {
  FR_CHECK(a.rank() == 2 && b.rank() == 2) << "matmul takes matrices, got " << a << " and " << b;
  const int64_t inner_a = a[options.transpose_a ? 0 : 1];
  const int64_t inner_b = b[options.transpose_b ? 1 : 0];
  FR_CHECK_EQ(inner_a, inner_b) << "inner dims of " << a << (options.transpose_a ? "^T" : "")
                                << " times " << b << (options.transpose_b ? "^T" : "");
  FR_CHECK_GT(inner_a, 0) << "empty inner dim of " << a << " times " << b;
  return Shape{a[options.transpose_a ? 1 : 0], b[options.transpose_b ? 0 : 1]};
}

Tensor Matmul(const OpContext& context, const Tensor& a, const Tensor& b,
              const MatmulOptions& options) {
  FR_CHECK(!options.accumulate) << "a new product has nothing to add to: use MatmulInto";
  Tensor out = context.Empty(MatmulShape(a.shape(), b.shape(), options), a.dtype());
  MatmulInto(context, a, b, options, out);
  return out;
}

void MatmulInto(const OpContext& context, const Tensor& a, const Tensor& b,
                const MatmulOptions& options, const Tensor& out) {
  const Shape product = MatmulShape(a.shape(), b.shape(), options);
  CheckOperands(a, b);
  CheckEpilogue(a, product, options);
  FR_CHECK_EQ(out.shape(), product) << "result of a matmul";
  FR_CHECK(out.dtype() == a.dtype() || out.dtype() == DType::kF32)
      << "matmul of " << a.dtype() << " into " << out.dtype();
  FR_CHECK(out.dim(1) == 1 || out.strides()[1] == 1)
      << "the rows of the result of a matmul must be contiguous";
  if (out.numel() == 0) return;
  context.kernels->matmul->Matmul(context, a, b, options, out);
}

}  // namespace forerun
