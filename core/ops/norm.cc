// SPDX-License-Identifier: Apache-2.0
#include "core/ops/norm.h"

#include "core/base/check.h"

namespace forerun {
namespace {

// Shape of the statistics: one value a row.
Shape RowsOf(const Shape& x) {
  FR_CHECK_GE(x.rank(), 1) << "norm of a scalar";
  FR_CHECK_GT(x[-1], 0) << "norm of empty rows " << x;
  return Shape{x.numel() / x[-1]};
}

void CheckInput(const Tensor& x) {
  FR_CHECK(IsFloating(x.dtype())) << "norm of " << x.dtype();
  FR_CHECK(x.has_contiguous_rows()) << "norm of strides " << x.strides();
}

void CheckWeight(const Tensor& x, const Tensor& weight, const char* name) {
  FR_CHECK_EQ(weight.shape(), Shape{x.dim(-1)}) << name << " of a norm of " << x.shape();
  FR_CHECK_EQ(weight.dtype(), x.dtype()) << name << " of a norm";
  FR_CHECK(weight.is_contiguous()) << name << " of a norm";
}

void CheckStatistic(const Tensor& x, const Tensor& statistic, const char* name) {
  FR_CHECK_EQ(statistic.shape(), RowsOf(x.shape())) << name << " of a norm of " << x.shape();
  FR_CHECK_EQ(statistic.dtype(), DType::kF32) << name << " of a norm";
  FR_CHECK(statistic.is_contiguous()) << name << " of a norm";
}

void CheckOutputGradient(const Tensor& x, const Tensor& dy) {
  FR_CHECK_EQ(dy.shape(), x.shape()) << "output gradient of a norm";
  FR_CHECK_EQ(dy.dtype(), x.dtype()) << "output gradient of a norm";
  FR_CHECK(dy.has_contiguous_rows()) << "output gradient of a norm";
}

void CheckWeightGradient(const Tensor& x, const Tensor& gradient, const char* name) {
  if (!gradient.defined()) return;
  FR_CHECK_EQ(gradient.shape(), Shape{x.dim(-1)}) << name << " of a norm of " << x.shape();
  FR_CHECK_EQ(gradient.dtype(), DType::kF32) << name << " of a norm";
  FR_CHECK(gradient.is_contiguous()) << name << " of a norm";
}

}  // namespace

LayerNormResult LayerNorm(const OpContext& context, const Tensor& x, const Tensor& gamma,
                          const Tensor& beta, float epsilon) {
  const Shape rows = RowsOf(x.shape());
  CheckInput(x);
  CheckWeight(x, gamma, "gamma");
  CheckWeight(x, beta, "beta");
  LayerNormResult out{context.Empty(x.shape(), x.dtype()), context.Empty(rows, DType::kF32),
                      context.Empty(rows, DType::kF32)};
  context.kernels->norm->LayerNorm(context, x, gamma, beta, epsilon, out);
  return out;
}

Tensor LayerNormBackwardInput(const OpContext& context, const Tensor& x, const Tensor& gamma,
                              const Tensor& mean, const Tensor& rstd, const Tensor& dy) {
  CheckInput(x);
  CheckWeight(x, gamma, "gamma");
  CheckStatistic(x, mean, "mean");
  CheckStatistic(x, rstd, "rstd");
  CheckOutputGradient(x, dy);
  Tensor dx = context.Empty(x.shape(), x.dtype());
  context.kernels->norm->LayerNormBackwardInput(context, x, gamma, mean, rstd, dy, dx);
  return dx;
}

void LayerNormBackwardWeight(const OpContext& context, const Tensor& x, const Tensor& mean,
                             const Tensor& rstd, const Tensor& dy, bool accumulate_gamma,
                             const Tensor& dgamma, bool accumulate_beta, const Tensor& dbeta) {
  CheckInput(x);
  CheckStatistic(x, mean, "mean");
  CheckStatistic(x, rstd, "rstd");
  CheckOutputGradient(x, dy);
  CheckWeightGradient(x, dgamma, "dgamma");
  CheckWeightGradient(x, dbeta, "dbeta");
  context.kernels->norm->LayerNormBackwardWeight(context, x, mean, rstd, dy, accumulate_gamma,
                                                 dgamma, accumulate_beta, dbeta);
}

RmsNormResult RmsNorm(const OpContext& context, const Tensor& x, const Tensor& gamma,
                      float epsilon) {
  const Shape rows = RowsOf(x.shape());
  CheckInput(x);
  CheckWeight(x, gamma, "gamma");
  RmsNormResult out{context.Empty(x.shape(), x.dtype()), context.Empty(rows, DType::kF32)};
  context.kernels->norm->RmsNorm(context, x, gamma, epsilon, out);
  return out;
}

Tensor RmsNormBackwardInput(const OpContext& context, const Tensor& x, const Tensor& gamma,
                            const Tensor& rrms, const Tensor& dy) {
  CheckInput(x);
  CheckWeight(x, gamma, "gamma");
  CheckStatistic(x, rrms, "rrms");
  CheckOutputGradient(x, dy);
  Tensor dx = context.Empty(x.shape(), x.dtype());
  context.kernels->norm->RmsNormBackwardInput(context, x, gamma, rrms, dy, dx);
  return dx;
}

void RmsNormBackwardWeight(const OpContext& context, const Tensor& x, const Tensor& rrms,
                           const Tensor& dy, bool accumulate, const Tensor& dgamma) {
  CheckInput(x);
  CheckStatistic(x, rrms, "rrms");
  CheckOutputGradient(x, dy);
  CheckWeightGradient(x, dgamma, "dgamma");
  context.kernels->norm->RmsNormBackwardWeight(context, x, rrms, dy, accumulate, dgamma);
}

}  // namespace forerun
