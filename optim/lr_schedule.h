// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace forerun {

enum class LrDecay : uint8_t { kConstant, kLinear, kCosine };
absl::StatusOr<LrDecay> LrDecayByName(absl::string_view name);

// The learning rate as a pure function of the iteration, as Megatron-LM has it. With iteration i
// counted from 0, w warm-up and d decay iterations:
//   i < w:  lr * (i + 1) / w, so that the first step moves and the w-th has the full rate
//   i >= d: min_lr (constant: lr)
//   else, with x = (i - w) / (d - w):
//     linear  min_lr + (lr - min_lr) (1 - x)
//     cosine  min_lr + (lr - min_lr) (1 + cos(pi x)) / 2
struct LrSchedule {
  double lr = 0.0;
  double min_lr = 0.0;
  LrDecay decay = LrDecay::kLinear;
  int64_t warmup_iters = 0;
  int64_t decay_iters = 0;

  double At(int64_t iteration) const;
};

}  // namespace forerun
