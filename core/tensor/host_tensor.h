// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace forerun {

// Cleared memory of the host, which the tensor and its views own: for values that the host itself
// computes and looks at, whatever device a rank computes with.
Tensor HostTensor(const Shape& shape, DType dtype);

}  // namespace forerun
