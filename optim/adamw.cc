// SPDX-License-Identifier: Apache-2.0
#include "optim/adamw.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/parallel_for.h"

namespace forerun {
namespace {

// What the formula needs of options and step, each a float.
struct Factors {
  float beta1, beta2, epsilon;
  float grad_scale;
  float keep;     // 1 - lr weight_decay
  float rate;     // lr / (1 - beta1^t)
  float v_scale;  // 1 / (1 - beta2^t)
};

// A function of its own, so that the compiler takes the promise that nothing overlaps.
void Update(const Factors f, int64_t count, float* __restrict p, float* __restrict m,
            float* __restrict v, const float* __restrict grad) {
  for (int64_t i = 0; i < count; ++i) {
    const float g = grad[i] * f.grad_scale;
    m[i] = f.beta1 * m[i] + (1.0f - f.beta1) * g;
    v[i] = f.beta2 * v[i] + (1.0f - f.beta2) * (g * g);
    p[i] = f.keep * p[i] - f.rate * (m[i] / (std::sqrt(v[i] * f.v_scale) + f.epsilon));
  }
}

}  // namespace

void AdamW(const AdamWOptions& options, const AdamWStep& step, absl::Span<float> p,
           absl::Span<float> m, absl::Span<float> v, absl::Span<const float> grad,
           const std::function<void(int64_t begin, int64_t end)>& updated) {
  FR_CHECK(p.size() == m.size() && p.size() == v.size() && p.size() == grad.size())
      << p.size() << " parameters, " << grad.size() << " gradients";
  const double t = static_cast<double>(step.step);
  const Factors factors{
      .beta1 = options.beta1,
      .beta2 = options.beta2,
      .epsilon = options.epsilon,
      .grad_scale = step.grad_scale,
      .keep = 1.0f - step.lr * step.weight_decay,
      .rate = static_cast<float>(step.lr / (1.0 - std::pow(double{options.beta1}, t))),
      .v_scale = static_cast<float>(1.0 / (1.0 - std::pow(double{options.beta2}, t))),
  };
  constexpr int64_t kPiece = 16384;
  ParallelFor(static_cast<int64_t>(p.size()), kPiece, [&](int64_t first, int64_t last) {
    for (int64_t begin = first; begin < last; begin += kPiece) {
      const int64_t end = std::min(last, begin + kPiece);
      Update(factors, end - begin, p.data() + begin, m.data() + begin, v.data() + begin,
             grad.data() + begin);
      if (updated) updated(begin, end);
    }
  });
}

}  // namespace forerun
