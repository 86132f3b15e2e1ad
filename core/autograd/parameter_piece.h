// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/optional.h"
#include "core/autograd/parameter.h"
#include "core/tensor/stateful.h"
#include "core/tensor/tensor.h"

namespace forerun {

// What a checkpoint holds, under `name`, of `values`, which have one dim and belong to the elements
// from `begin` on of a parameter's local box: all but padding. None where nothing is left.
absl::optional<StatePiece> PieceOf(const Parameter& parameter, std::string name, int64_t begin,
                                   const Tensor& values);

}  // namespace forerun
