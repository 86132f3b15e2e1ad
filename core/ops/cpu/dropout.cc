// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/dropout.h"

#include <algorithm>

#include "core/base/parallel_for.h"
#include "core/ops/cpu/uniforms.h"
#include "core/ops/cpu/vectors.h"

namespace forerun::cpu {
namespace {

constexpr int64_t kElementsAThread = 1 << 13;
constexpr int64_t kBlock = 512;

// Where row `row` (over all dims but the last) of the box begins: in x, and in the global order.
struct RowStart {
  int64_t position = 0;
  uint64_t index = 0;
};

RowStart StartOf(const Tensor& x, const DropoutOptions& options, int64_t row) {
  const int last = x.rank() - 1;
  RowStart start{0, static_cast<uint64_t>(options.offset[last])};
  uint64_t stride = static_cast<uint64_t>(options.global[last]);
  for (int dim = last - 1; dim >= 0; --dim) {
    const int64_t at = row % x.dim(dim);
    row /= x.dim(dim);
    start.position += at * x.strides()[dim];
    start.index += static_cast<uint64_t>(options.offset[dim] + at) * stride;
    stride *= static_cast<uint64_t>(options.global[dim]);
  }
  return start;
}

template <typename T>
void DropRow(const T* x, uint64_t index, int64_t n, const DropoutOptions& options, T* y) {
  const float p = options.p;
  const float scale = static_cast<float>(1.0 / (1.0 - static_cast<double>(p)));
  alignas(64) float uniforms[kBlock], buffer[kBlock], kept[kBlock];
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = std::min(kBlock, n - begin);
    Uniforms(options.key, index + static_cast<uint64_t>(begin), count, uniforms);
    const float* values = AsFloats(x + begin, count, buffer);
    for (int64_t i = 0; i < count; ++i) kept[i] = uniforms[i] < p ? 0.0f : values[i] * scale;
    StoreFloats(kept, count, y + begin);
  }
}

class CpuDropout final : public DropoutKernels {
 public:
  void Dropout(const OpContext&, const Tensor& x, const DropoutOptions& options,
               const Tensor& y) const override {
    const int64_t n = x.dim(-1), rows = n == 0 ? 0 : x.numel() / n;
    VisitStored(x.dtype(), [&](auto type) {
      using T = decltype(type);
      const T* from = x.data<T>();
      T* to = y.mutable_data<T>();
      ParallelFor(rows, std::max<int64_t>(1, kElementsAThread / std::max<int64_t>(1, n)),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t row = begin; row < end; ++row) {
                      const RowStart start = StartOf(x, options, row);
                      DropRow(from + start.position, start.index, n, options, to + row * n);
                    }
                  });
    });
  }
};

}  // namespace

const DropoutKernels& Dropout() {
  static const CpuDropout kernels;
  return kernels;
}

}  // namespace forerun::cpu
