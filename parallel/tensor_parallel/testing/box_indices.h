// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor/shape.h"

namespace forerun {

// Where the elements of `box`, row-major, lie in a row-major tensor of shape `global`.
std::vector<int64_t> IndicesOf(const Box& box, const Shape& global);

}  // namespace forerun
