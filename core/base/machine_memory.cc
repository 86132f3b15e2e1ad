// SPDX-License-Identifier: Apache-2.0
#include "core/base/machine_memory.h"

#include <sys/sysinfo.h>

#include <limits>

namespace forerun {

int64_t MachineMemoryBytes() {
  struct sysinfo info = {};
  if (sysinfo(&info) != 0) return std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(info.totalram + info.totalswap) * info.mem_unit;
}

}  // namespace forerun
