// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "trainer/arguments.h"

namespace forerun {

// Fills what follows from other flags, makes paths absolute, and checks every value that needs no
// file: one sentence that names the flag.
absl::Status ResolveArguments(Arguments& arguments);

}  // namespace forerun
