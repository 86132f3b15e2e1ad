// SPDX-License-Identifier: Apache-2.0
#include "optim/lr_schedule.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace forerun {

absl::StatusOr<LrDecay> LrDecayByName(absl::string_view name) {
  if (name == "constant") return LrDecay::kConstant;
  if (name == "linear") return LrDecay::kLinear;
  if (name == "cosine") return LrDecay::kCosine;
  return absl::InvalidArgumentError(
      absl::StrCat("--lr-decay-style ", name, " is not known; choose constant, linear or cosine"));
}

double LrSchedule::At(int64_t iteration) const {
  if (iteration < warmup_iters) {
    return lr * static_cast<double>(iteration + 1) / static_cast<double>(warmup_iters);
  }
  if (decay == LrDecay::kConstant) return lr;
  if (iteration >= decay_iters) return min_lr;
  const double x = static_cast<double>(iteration - warmup_iters) /
                   static_cast<double>(decay_iters - warmup_iters);
  const double remaining =
      decay == LrDecay::kLinear ? 1.0 - x : 0.5 * (1.0 + std::cos(3.14159265358979323846 * x));
  return min_lr + (lr - min_lr) * remaining;
}

}  // namespace forerun
