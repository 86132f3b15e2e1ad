// SPDX-License-Identifier: Apache-2.0
#include "optim/adamw.h"

#include <cmath>

#include "core/base/check.h"
#include "core/base/parallel_for.h"

namespace forerun {

void AdamW(const AdamWOptions& options, const AdamWStep& step, absl::Span<float> p,
           absl::Span<float> m, absl::Span<float> v, absl::Span<const float> grad) {
  FR_CHECK(p.size() == m.size() && p.size() == v.size() && p.size() == grad.size())
      << p.size() << " parameters, " << grad.size() << " gradients";
  const float beta1 = options.beta1, beta2 = options.beta2, epsilon = options.epsilon;
  const float keep = 1.0f - step.lr * step.weight_decay;
  const double t = static_cast<double>(step.step);
  const float rate = static_cast<float>(step.lr / (1.0 - std::pow(double{beta1}, t)));
  const float v_scale = static_cast<float>(1.0 / (1.0 - std::pow(double{beta2}, t)));
  const float scale = step.grad_scale;
  constexpr int64_t kGrain = 16384;
  ParallelFor(static_cast<int64_t>(p.size()), kGrain, [&](int64_t begin, int64_t end) {
    float* __restrict pp = p.data();
    float* __restrict mm = m.data();
    float* __restrict vv = v.data();
    const float* __restrict gg = grad.data();
    for (int64_t i = begin; i < end; ++i) {
      const float g = gg[i] * scale;
      mm[i] = beta1 * mm[i] + (1.0f - beta1) * g;
      vv[i] = beta2 * vv[i] + (1.0f - beta2) * (g * g);
      pp[i] = keep * pp[i] - rate * (mm[i] / (std::sqrt(vv[i] * v_scale) + epsilon));
    }
  });
}

}  // namespace forerun
