// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/split.h"

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace forerun {

absl::Status CheckSplit(absl::string_view what, int64_t extent, int ranks) {
  if (extent % ranks == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", extent, " is not divisible by tensor-parallel size ", ranks));
}

Box SplitBox(const Shape& global, int dim, const comm::ProcessGroup& group) {
  const absl::Status status = CheckSplit("extent", global[dim], group.size());
  FR_CHECK(status.ok()) << std::string(status.message()) << " in " << global;
  Box box = Box::Whole(global);
  const int64_t part = global[dim] / group.size();
  box.offset.set(dim, group.rank() * part);
  box.extent.set(dim, part);
  return box;
}

}  // namespace forerun
