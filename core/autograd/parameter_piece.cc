// SPDX-License-Identifier: Apache-2.0
#include "core/autograd/parameter_piece.h"

#include <algorithm>
#include <utility>

namespace forerun {

absl::optional<StatePiece> PieceOf(const Parameter& parameter, std::string name, int64_t begin,
                                   const Tensor& values) {
  Box box = parameter.logical_box();
  const int64_t count = std::min(values.numel(), box.extent.numel() - begin);
  if (count <= 0) return absl::nullopt;
  return StatePiece{std::move(name), parameter.logical_shape(), std::move(box), begin,
                    values.Slice(0, 0, count)};
}

}  // namespace forerun
