// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/testing/box_indices.h"

namespace forerun {

std::vector<int64_t> IndicesOf(const Box& box, const Shape& global) {
  const Shape global_strides = global.ContiguousStrides();
  const Shape box_strides = box.extent.ContiguousStrides();
  std::vector<int64_t> indices(static_cast<size_t>(box.extent.numel()));
  for (size_t i = 0; i < indices.size(); ++i) {
    for (int dim = 0; dim < global.rank(); ++dim) {
      const int64_t at = static_cast<int64_t>(i) / box_strides[dim] % box.extent[dim];
      indices[i] += (box.offset[dim] + at) * global_strides[dim];
    }
  }
  return indices;
}

}  // namespace forerun
