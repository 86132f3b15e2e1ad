// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/proof/fault.h"

namespace forerun::proof {

absl::string_view NameOf(Property property) {
  switch (property) {
    case Property::kFreshRead:
      return "a read sees the version of the last accepted step";
    case Property::kGateClosed:
      return "the gate is closed until the gather has ended";
    case Property::kOnceAStep:
      return "each operation once a step, in plan order";
    case Property::kOneSequence:
      return "one issue sequence on all ranks";
    case Property::kAfterUpdate:
      return "no gather before its own update has ended";
    case Property::kExactSum:
      return "a reduction is the sum of all contributions";
    case Property::kNotTouched:
      return "no buffer is touched while an operation has it";
    case Property::kWindow:
      return "the window is kept";
    case Property::kEager:
      return "what fits into the window has been started";
    case Property::kNoDeadlock:
      return "no deadlock";
  }
  return "";
}

}  // namespace forerun::proof
