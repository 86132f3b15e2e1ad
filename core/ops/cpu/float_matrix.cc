// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/float_matrix.h"

#include <algorithm>

#include "core/base/parallel_for.h"
#include "core/ops/cpu/vectors.h"

namespace forerun::cpu {
namespace {

constexpr int64_t kElementsAThread = 1 << 15;

template <typename Body>
void ForRows(const Tensor& x, Body body) {
  const int64_t grain = std::max<int64_t>(1, kElementsAThread / std::max<int64_t>(1, x.dim(1)));
  ParallelFor(x.dim(0), grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) body(row);
  });
}

}  // namespace

Tensor FloatMatrix(const OpContext& context, const Tensor& x) {
  Tensor floats = context.Empty(x.shape(), DType::kF32);
  const int64_t columns = x.dim(1), stride = x.strides()[0];
  float* to = floats.mutable_data<float>();
  VisitStored(x.dtype(), [&](auto type) {
    const auto* from = x.data<decltype(type)>();
    ForRows(x, [&](int64_t row) { LoadFloats(from + row * stride, columns, to + row * columns); });
  });
  return floats;
}

void RoundMatrix(const Tensor& from, const Tensor& to) {
  const int64_t columns = from.dim(1), from_stride = from.strides()[0], stride = to.strides()[0];
  const float* source = from.data<float>();
  VisitStored(to.dtype(), [&](auto type) {
    auto* target = to.mutable_data<decltype(type)>();
    ForRows(from, [&](int64_t row) {
      StoreFloats(source + row * from_stride, columns, target + row * stride);
    });
  });
}

}  // namespace forerun::cpu
