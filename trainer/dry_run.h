// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "trainer/arguments.h"

namespace forerun {

// What a job would be, without starting it, at any size: every stage's chunk is built on meta
// tensors over groups that move nothing, and planned. Returns text for a person: parameters,
// buckets, the schedule with its bubble and timeline, and memory of one rank of every stage.
// Memory counts parameters, gradients, optimizer state, and the activations of as many microbatches
// as the schedule keeps; not what kernels use while they run.
absl::StatusOr<std::string> DryRun(const Arguments& arguments);

}  // namespace forerun
