// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/region.h"

#include <algorithm>
#include <array>

#include "core/base/check.h"

namespace forerun {
namespace {

using Index = std::array<int64_t, Shape::kMaxRank>;

// Walks the rows that two boxes share.
class RowWalk {
 public:
  RowWalk(const Region& to, const Region& from)
      : to_(to),
        from_(from),
        to_strides_(to.box.extent.ContiguousStrides()),
        from_strides_(from.box.extent.ContiguousStrides()) {
    is_empty_ = to.numel == 0 || from.numel == 0;
    for (int d = 0; d < rank(); ++d) {
      low_[d] = std::max(to.box.offset[d], from.box.offset[d]);
      high_[d] =
          std::min(to.box.offset[d] + to.box.extent[d], from.box.offset[d] + from.box.extent[d]);
      is_empty_ |= low_[d] >= high_[d];
    }
    if (is_empty_) return;
    ChooseRow();
    if (row_dim_ > 0) {
      NarrowFirstDim(to_, to_strides_);
      NarrowFirstDim(from_, from_strides_);
      is_empty_ = low_[0] >= high_[0];
    }
    at_ = low_;
  }

  std::vector<SharedRun> Runs() {
    std::vector<SharedRun> runs;
    while (!is_empty_) {
      const int64_t to = Local(to_, to_strides_);
      const int64_t from = Local(from_, from_strides_);
      if (to >= to_.end() || from >= from_.end()) break;  // both only grow
      const int64_t begin = std::max({int64_t{0}, to_.begin - to, from_.begin - from});
      const int64_t end = std::min({row_numel_, to_.end() - to, from_.end() - from});
      if (begin < end) {
        runs.push_back({to + begin - to_.begin, from + begin - from_.begin, end - begin});
      }
      if (!Advance()) break;
    }
    return runs;
  }

 private:
  int rank() const { return to_.box.extent.rank(); }

  // A row is dims [row_dim_, rank): contiguous in both boxes, which agree on the dims after the
  // first of these.
  void ChooseRow() {
    row_dim_ = rank();
    bool agree = true;
    while (agree && row_dim_ > 0) {
      const int d = --row_dim_;
      row_numel_ *= high_[d] - low_[d];
      agree = to_.box.offset[d] == from_.box.offset[d] && to_.box.extent[d] == from_.box.extent[d];
    }
  }

  void NarrowFirstDim(const Region& region, const Shape& strides) {
    const int64_t offset = region.box.offset[0];
    low_[0] = std::max(low_[0], offset + region.begin / strides[0]);
    high_[0] = std::min(high_[0], offset + (region.end() - 1) / strides[0] + 1);
  }

  // The element of a region's box at which the current row starts.
  int64_t Local(const Region& region, const Shape& strides) const {
    int64_t local = 0;
    for (int d = 0; d < rank(); ++d) local += (at_[d] - region.box.offset[d]) * strides[d];
    return local;
  }

  bool Advance() {
    for (int d = row_dim_ - 1; d >= 0; --d) {
      if (++at_[d] < high_[d]) return true;
      at_[d] = low_[d];
    }
    return false;
  }

  const Region& to_;
  const Region& from_;
  const Shape to_strides_;
  const Shape from_strides_;
  Index low_{};
  Index high_{};
  Index at_{};
  int row_dim_ = 0;
  int64_t row_numel_ = 1;
  bool is_empty_ = false;
};

}  // namespace

bool IsInside(const Region& region, const Shape& global) {
  const Box& box = region.box;
  if (box.offset.rank() != global.rank() || box.extent.rank() != global.rank()) return false;
  int64_t numel = 1;
  for (int d = 0; d < global.rank(); ++d) {
    // Subtracted, not added: no number overflows.
    if (box.offset[d] > global[d] || box.extent[d] > global[d] - box.offset[d]) return false;
    if (__builtin_mul_overflow(numel, box.extent[d], &numel)) return false;
  }
  return region.begin >= 0 && region.numel >= 0 && region.begin <= numel &&
         region.numel <= numel - region.begin;
}

std::vector<SharedRun> SharedRuns(const Region& to, const Region& from) {
  FR_CHECK_EQ(to.box.extent.rank(), from.box.extent.rank());
  return RowWalk(to, from).Runs();
}

}  // namespace forerun
