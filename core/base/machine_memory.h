// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace forerun {

// What this machine's processes can hold together, in bytes, swap included: a run that needs more
// cannot be. The largest number where the system does not tell.
int64_t MachineMemoryBytes();

}  // namespace forerun
