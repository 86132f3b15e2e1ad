// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/shape.h"

namespace forerun {

// Part of a tensor: the elements [begin, begin + numel) of `box`, counted row-major inside the box.
struct Region {
  Box box;
  int64_t begin = 0;
  int64_t numel = 0;

  int64_t end() const { return begin + numel; }
  bool operator==(const Region&) const = default;
};

// Whether `region` is one of a tensor of shape `global`, in which no count overflows.
bool IsInside(const Region& region, const Shape& global);

// `count` consecutive elements that two regions share: they start at element `to` of the one and
// element `from` of the other, both counted from the regions' begins.
struct SharedRun {
  int64_t to = 0;
  int64_t from = 0;
  int64_t count = 0;
  bool operator==(const SharedRun&) const = default;
};

// All elements that two regions of one tensor share, as runs in ascending order, as long as the
// boxes allow. Boxes that agree on the dims after d share runs of whole slices along dim d; the
// walk is over the dims before d, the first of them narrowed to where both regions lie.
std::vector<SharedRun> SharedRuns(const Region& to, const Region& from);

}  // namespace forerun
