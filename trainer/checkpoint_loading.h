// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "checkpoint/checkpoint.h"
#include "core/tensor/stateful.h"

namespace forerun {

// Fills a state from a checkpoint of a run whose weights had another type or the same. The fp32
// values of 16-bit weights are saved as masters beside them: fp32 weights are taken from there, and
// masters that were not saved from the fp32 weights.
absl::Status LoadInAnyPrecision(Checkpoint& checkpoint, Stateful& state);

}  // namespace forerun
