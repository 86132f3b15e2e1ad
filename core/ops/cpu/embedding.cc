// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/embedding.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/parallel_for.h"
#include "core/ops/cpu/vectors.h"

namespace forerun::cpu {
namespace {

constexpr int64_t kElementsAThread = 1 << 14;
constexpr int64_t kColumnGrain = 64;  // columns: no two threads write to one cache line

// The rows of the table that this rank holds.
struct Rows {
  int64_t first, count;

  // The row of `token` in the table, or -1.
  int64_t Of(int32_t token) const {
    const int64_t row = token - first;
    return row >= 0 && row < count ? row : -1;
  }
};

// Columns [first, last) of the gradient. Each element is a sum in token order.
template <typename T>
void AddColumns(const Tensor& tokens, const Tensor& dout, const Rows& rows, int64_t first,
                int64_t last, const Tensor& dtable) {
  const int32_t* token = tokens.data<int32_t>();
  const T* gradient = dout.data<T>() + first;
  float* table = dtable.mutable_data<float>() + first;
  const int64_t stride = dout.strides()[0], table_stride = dtable.strides()[0];
  const int64_t columns = last - first;
  std::vector<float> buffer(columns);
  for (int64_t t = 0; t < tokens.numel(); ++t) {
    const int64_t row = rows.Of(token[t]);
    if (row < 0) continue;
    const float* add = AsFloats(gradient + t * stride, columns, buffer.data());
    float* sum = table + row * table_stride;
    for (int64_t c = 0; c < columns; ++c) sum[c] += add[c];
  }
}

void ClearColumns(const Tensor& dtable, int64_t first, int64_t last) {
  float* table = dtable.mutable_data<float>();
  for (int64_t row = 0; row < dtable.dim(0); ++row) {
    float* begin = table + row * dtable.strides()[0];
    std::fill(begin + first, begin + last, 0.0f);
  }
}

class CpuEmbedding final : public EmbeddingKernels {
 public:
  void Forward(const OpContext&, const Tensor& tokens, const Tensor& table, int64_t first_row,
               const Tensor& out) const override {
    const Rows rows{first_row, table.dim(0)};
    const int32_t* token = tokens.data<int32_t>();
    const char* from = static_cast<const char*>(table.raw_data());
    char* to = static_cast<char*>(out.raw_mutable_data());
    const int64_t h = table.dim(1);
    const size_t bytes = static_cast<size_t>(h * SizeOf(table.dtype()));
    const size_t stride = static_cast<size_t>(table.strides()[0] * SizeOf(table.dtype()));
    ParallelFor(tokens.numel(), std::max<int64_t>(1, kElementsAThread / std::max<int64_t>(1, h)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t t = begin; t < end; ++t) {
                    const int64_t row = rows.Of(token[t]);
                    if (row < 0) {
                      std::memset(to + t * bytes, 0, bytes);
                    } else {
                      std::memcpy(to + t * bytes, from + row * stride, bytes);
                    }
                  }
                });
  }

  void Backward(const OpContext&, const Tensor& tokens, const Tensor& dout, int64_t first_row,
                bool accumulate, const Tensor& dtable) const override {
    const Rows rows{first_row, dtable.dim(0)};
    const Tensor gradient = dout.AsMatrix();
    VisitStored(dout.dtype(), [&](auto type) {
      ParallelFor(dtable.dim(1), kColumnGrain, [&](int64_t begin, int64_t end) {
        if (!accumulate) ClearColumns(dtable, begin, end);
        AddColumns<decltype(type)>(tokens, gradient, rows, begin, end, dtable);
      });
    });
  }
};

}  // namespace

const EmbeddingKernels& Embedding() {
  static const CpuEmbedding kernels;
  return kernels;
}

}  // namespace forerun::cpu
