// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"

namespace forerun {

// Normalisation over the last dim, n elements a row; statistics are fp32, one a row. x and dy have
// one shape and dtype, and leading dims that collapse (Tensor::AsMatrix); gamma and beta have the
// dtype of x.
//
// LayerNorm: y = (x - mean) * rstd * gamma + beta, rstd = 1 / sqrt(variance + epsilon), with the
// biased variance (Ba, Kiros, Hinton 2016). gamma and beta are [n].
struct LayerNormResult {
  Tensor y;     // shape and dtype of x
  Tensor mean;  // fp32 [rows]
  Tensor rstd;  // fp32 [rows]
};
LayerNormResult LayerNorm(const OpContext& context, const Tensor& x, const Tensor& gamma,
                          const Tensor& beta, float epsilon);
Tensor LayerNormBackwardInput(const OpContext& context, const Tensor& x, const Tensor& gamma,
                              const Tensor& mean, const Tensor& rstd, const Tensor& dy);
// dgamma and dbeta are fp32 [n]; either may be undefined (frozen).
void LayerNormBackwardWeight(const OpContext& context, const Tensor& x, const Tensor& mean,
                             const Tensor& rstd, const Tensor& dy, bool accumulate_gamma,
                             const Tensor& dgamma, bool accumulate_beta, const Tensor& dbeta);

// RMSNorm: y = x * rrms * gamma, rrms = 1 / sqrt(mean(x^2) + epsilon) (Zhang, Sennrich 2019).
struct RmsNormResult {
  Tensor y;
  Tensor rrms;  // fp32 [rows]
};
RmsNormResult RmsNorm(const OpContext& context, const Tensor& x, const Tensor& gamma,
                      float epsilon);
Tensor RmsNormBackwardInput(const OpContext& context, const Tensor& x, const Tensor& gamma,
                            const Tensor& rrms, const Tensor& dy);
void RmsNormBackwardWeight(const OpContext& context, const Tensor& x, const Tensor& rrms,
                           const Tensor& dy, bool accumulate, const Tensor& dgamma);

class NormKernels {
 public:
  virtual ~NormKernels() = default;
  virtual void LayerNorm(const OpContext& context, const Tensor& x, const Tensor& gamma,
                         const Tensor& beta, float epsilon, const LayerNormResult& out) const = 0;
  virtual void LayerNormBackwardInput(const OpContext& context, const Tensor& x,
                                      const Tensor& gamma, const Tensor& mean, const Tensor& rstd,
                                      const Tensor& dy, const Tensor& dx) const = 0;
  virtual void LayerNormBackwardWeight(const OpContext& context, const Tensor& x,
                                       const Tensor& mean, const Tensor& rstd, const Tensor& dy,
                                       bool accumulate_gamma, const Tensor& dgamma,
                                       bool accumulate_beta, const Tensor& dbeta) const = 0;
  virtual void RmsNorm(const OpContext& context, const Tensor& x, const Tensor& gamma,
                       float epsilon, const RmsNormResult& out) const = 0;
  virtual void RmsNormBackwardInput(const OpContext& context, const Tensor& x, const Tensor& gamma,
                                    const Tensor& rrms, const Tensor& dy,
                                    const Tensor& dx) const = 0;
  virtual void RmsNormBackwardWeight(const OpContext& context, const Tensor& x, const Tensor& rrms,
                                     const Tensor& dy, bool accumulate,
                                     const Tensor& dgamma) const = 0;
};

}  // namespace forerun
