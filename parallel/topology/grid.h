// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace forerun {

enum class Axis : uint8_t { kTensor, kData, kPipeline };

// Where a rank stands along each axis.
struct Coordinates {
  int tp = 0;
  int dp = 0;
  int pp = 0;
  bool operator==(const Coordinates&) const = default;
};

// The arithmetic of a world of tp x dp x pp ranks: rank = tp + tp_size (dp + dp_size pp), as
// Megatron-LM orders them by default, so that tensor-parallel ranks are neighbours. Laws: a rank
// and its coordinates determine each other; along each axis the groups partition the world.
class Grid {
 public:
  // Fails where a size is below one or world_size is not a multiple of the two degrees' product.
  static absl::StatusOr<Grid> Create(int world_size, int tp_size, int pp_size);

  int world_size() const { return tp_size_ * dp_size_ * pp_size_; }
  int tp_size() const { return tp_size_; }
  int dp_size() const { return dp_size_; }
  int pp_size() const { return pp_size_; }

  Coordinates CoordinatesOf(int rank) const;
  int RankAt(const Coordinates& at) const;
  // The ranks that share all coordinates of `rank` but the one along `axis`, in its order.
  std::vector<int> Members(Axis axis, int rank) const;
  // The ranks of the first and the last stage among the pipeline of `rank`: one where they are one.
  std::vector<int> EmbeddingMembers(int rank) const;

 private:
  Grid(int tp_size, int dp_size, int pp_size)
      : tp_size_(tp_size), dp_size_(dp_size), pp_size_(pp_size) {}
  int tp_size_;
  int dp_size_;
  int pp_size_;
};

}  // namespace forerun
