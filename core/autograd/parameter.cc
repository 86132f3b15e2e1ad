// SPDX-License-Identifier: Apache-2.0
#include "core/autograd/parameter.h"

#include <algorithm>

namespace forerun {

Shape Parameter::logical_shape() const {
  Shape shape = spec_.global_shape;
  if (spec_.padding_rows > 0) shape.set(0, shape[0] - spec_.padding_rows);
  return shape;
}

Box Parameter::logical_box() const {
  Box box = spec_.box;
  if (spec_.padding_rows == 0) return box;
  const int64_t rows = logical_shape()[0] - box.offset[0];
  box.extent.set(0, std::clamp<int64_t>(rows, 0, box.extent[0]));
  return box;
}

}  // namespace forerun
