// SPDX-License-Identifier: Apache-2.0
#include "parallel/topology/grid.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace forerun {

absl::StatusOr<Grid> Grid::Create(int world_size, int tp_size, int pp_size) {
  for (const auto& [what, size] : {std::pair("world", world_size), std::pair("tensor", tp_size),
                                   std::pair("pipeline", pp_size)}) {
    if (size < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " size ", size, " is not a number of ranks"));
    }
  }
  const int64_t model_size = int64_t{tp_size} * pp_size;
  if (world_size % model_size != 0) {
    return absl::InvalidArgumentError(absl::StrCat("a world of ", world_size,
                                                   " ranks is not a multiple of tensor size ",
                                                   tp_size, " x pipeline size ", pp_size));
  }
  return Grid(tp_size, static_cast<int>(world_size / model_size), pp_size);
}

Coordinates Grid::CoordinatesOf(int rank) const {
  FR_CHECK(rank >= 0 && rank < world_size()) << "rank " << rank << " of " << world_size();
  return {rank % tp_size_, rank / tp_size_ % dp_size_, rank / (tp_size_ * dp_size_)};
}

int Grid::RankAt(const Coordinates& at) const {
  FR_CHECK(at.tp >= 0 && at.tp < tp_size_ && at.dp >= 0 && at.dp < dp_size_ && at.pp >= 0 &&
           at.pp < pp_size_)
      << "no rank stands at tp " << at.tp << ", dp " << at.dp << ", pp " << at.pp;
  return at.tp + tp_size_ * (at.dp + dp_size_ * at.pp);
}

std::vector<int> Grid::Members(Axis axis, int rank) const {
  Coordinates at = CoordinatesOf(rank);
  int Coordinates::*moving = axis == Axis::kTensor ? &Coordinates::tp
                             : axis == Axis::kData ? &Coordinates::dp
                                                   : &Coordinates::pp;
  const int size = axis == Axis::kTensor ? tp_size_ : axis == Axis::kData ? dp_size_ : pp_size_;
  std::vector<int> members;
  for (int i = 0; i < size; ++i) {
    at.*moving = i;
    members.push_back(RankAt(at));
  }
  return members;
}

std::vector<int> Grid::EmbeddingMembers(int rank) const {
  const std::vector<int> stages = Members(Axis::kPipeline, rank);
  if (stages.size() == 1) return stages;
  return {stages.front(), stages.back()};
}

}  // namespace forerun
