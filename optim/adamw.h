// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "absl/types/span.h"

namespace forerun {

// AdamW (Loshchilov, Hutter 2019; decoupled weight decay), at step t counted from 1:
//   g  = grad * grad_scale
//   m  = beta1 m + (1 - beta1) g
//   v  = beta2 v + (1 - beta2) g^2
//   p -= lr weight_decay p
//   p -= lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon)
struct AdamWOptions {
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
};

struct AdamWStep {
  float lr = 0.0f;
  float weight_decay = 0.0f;
  float grad_scale = 1.0f;  // gradient clipping
  int64_t step = 1;
};

// Updates p, m and v in place; all four have one length. `updated` (may be empty) is told of every
// piece [begin, end) right after, on the thread that has it in its cache. Elementwise in fp32: an
// element's result depends on no other, so any cut into shards or threads gives the same bits.
void AdamW(const AdamWOptions& options, const AdamWStep& step, absl::Span<float> p,
           absl::Span<float> m, absl::Span<float> v, absl::Span<const float> grad,
           const std::function<void(int64_t begin, int64_t end)>& updated = nullptr);

}  // namespace forerun
