// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace forerun {

// The factor that brings a gradient of this norm down to `max_norm`, as Megatron-LM and PyTorch
// take it: min(1, max_norm / (norm + 1e-6)). max_norm 0: no clipping.
inline float ClipFactor(double norm, double max_norm) {
  if (max_norm <= 0.0) return 1.0f;
  const double factor = max_norm / (norm + 1e-6);
  return factor < 1.0 ? static_cast<float>(factor) : 1.0f;
}

}  // namespace forerun
