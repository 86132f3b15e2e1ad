// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/tensor/shape.h"
#include "parallel/comm/process_group.h"

namespace forerun {

// Ok where `extent` things can be dealt out evenly over `ranks` tensor-parallel ranks. Otherwise
// one sentence that names `what` and both numbers.
absl::Status CheckSplit(absl::string_view what, int64_t extent, int ranks);

// The box that the group's own rank holds of a tensor of shape `global` split evenly along `dim`
// (negative: from the last): rank r has the r-th of size() equal parts. That the extent can be
// split is checked.
Box SplitBox(const Shape& global, int dim, const comm::ProcessGroup& group);

}  // namespace forerun
