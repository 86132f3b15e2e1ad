// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trainer/arguments.h"

namespace forerun {

// With --use-checkpoint-args: arguments that hold the checkpoint's model and nothing else, as
// defaults under what the command line says.
absl::StatusOr<Arguments> ModelOfCheckpoint(const CheckpointArguments& checkpoint);

// With --load: opens the checkpoint, says in `arguments.start` where the run begins, and replaces
// the flags that the checkpoint decides (schedule, seed). One sentence that names the flags says
// what conflicts.
absl::Status ResolveStart(Arguments& arguments);

}  // namespace forerun
