// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "trainer/arguments.h"

namespace forerun {

// What a job would be, without starting it, at any size: ranks are run on meta tensors over groups
// that move nothing, and the communication of all of them is verified (job_check.h). Returns text
// for a person: parameters, buckets, the schedule with its bubble and timeline, and memory of one
// rank of every stage. Memory counts parameters, gradients, optimizer state, and as activations the
// most that all other tensors of a step take at once; not what kernels use while they run.
//
// The time it takes does not depend on widths, on the batch, or on data- and tensor-parallel sizes
// (of more than 64 ranks one a stage is run, of many microbatches a few). It grows with the layers
// of a stage, and with more than the square of the stages: seconds for 16384 layers or 128 stages.
absl::StatusOr<std::string> DryRun(const Arguments& arguments);

}  // namespace forerun
