// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/check.h"
#include "core/base/parallel_for.h"

namespace forerun::cpu {
namespace {

constexpr int64_t kElementsAThread = 1 << 15;

// How to walk one or two tensors of a shape with as few dims as their strides allow: dims of
// extent one are dropped, and neighbours that lie alike in both tensors become one. The last dim
// is walked by the innermost loop; there is always one.
struct Walk {
  std::array<int64_t, Shape::kMaxRank> extent{};
  std::array<int64_t, Shape::kMaxRank> from{};  // strides in elements
  std::array<int64_t, Shape::kMaxRank> to{};
  int dims = 0;

  Walk(const Shape& shape, const Shape& from_strides, const Shape& to_strides) {
    for (int i = 0; i < shape.rank(); ++i) {
      if (shape[i] != 1) Append(shape[i], from_strides[i], to_strides[i]);
    }
    if (dims == 0) Append(1, 1, 1);
  }

  void Append(int64_t size, int64_t from_stride, int64_t to_stride) {
    if (dims > 0 && from[dims - 1] == size * from_stride && to[dims - 1] == size * to_stride) {
      extent[dims - 1] *= size;
      from[dims - 1] = from_stride;
      to[dims - 1] = to_stride;
      return;
    }
    extent[dims] = size;
    from[dims] = from_stride;
    to[dims++] = to_stride;
  }

  int64_t inner() const { return extent[dims - 1]; }
  int64_t rows() const {
    int64_t rows = 1;
    for (int i = 0; i + 1 < dims; ++i) rows *= extent[i];
    return rows;
  }
  bool contiguous() const { return from[dims - 1] == 1 && to[dims - 1] == 1; }

  // Where row `row` of the outer dims begins, by the strides of one side.
  int64_t RowOffset(int64_t row, const std::array<int64_t, Shape::kMaxRank>& strides) const {
    int64_t offset = 0;
    for (int i = dims - 2; i >= 0; --i) {
      offset += row % extent[i] * strides[i];
      row /= extent[i];
    }
    return offset;
  }
};

// Calls body(from offset, to offset, count) on runs along the innermost dim that cover the walk,
// over the loop threads; one long run is cut.
template <typename Body>
void ForRuns(const Walk& walk, Body body) {
  const int64_t inner = walk.inner();
  if (inner == 0 || walk.rows() == 0) return;
  if (walk.rows() == 1) {
    ParallelFor(inner, kElementsAThread, [&](int64_t begin, int64_t end) {
      body(begin * walk.from[walk.dims - 1], begin * walk.to[walk.dims - 1], end - begin);
    });
    return;
  }
  ParallelFor(walk.rows(), std::max<int64_t>(1, kElementsAThread / inner),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  body(walk.RowOffset(row, walk.from), walk.RowOffset(row, walk.to), inner);
                }
              });
}

// Bits is an unsigned integer as wide as an element.
template <typename Bits>
void CopyAs(const Tensor& from, const Tensor& to) {
  const Walk walk(from.shape(), from.strides(), to.strides());
  const auto* source = static_cast<const Bits*>(from.raw_data());
  auto* target = static_cast<Bits*>(to.raw_mutable_data());
  const int64_t from_step = walk.from[walk.dims - 1], to_step = walk.to[walk.dims - 1];
  if (walk.contiguous()) {
    ForRuns(walk, [&](int64_t from_offset, int64_t to_offset, int64_t count) {
      std::memcpy(target + to_offset, source + from_offset, count * sizeof(Bits));
    });
    return;
  }
  ForRuns(walk, [&](int64_t from_offset, int64_t to_offset, int64_t count) {
    const Bits* in = source + from_offset;
    Bits* out = target + to_offset;
    for (int64_t i = 0; i < count; ++i) out[i * to_step] = in[i * from_step];
  });
}

class CpuCopy final : public CopyKernels {
 public:
  void Copy(const OpContext&, const Tensor& from, const Tensor& to) const override {
    switch (SizeOf(from.dtype())) {
      case 1:
        return CopyAs<uint8_t>(from, to);
      case 2:
        return CopyAs<uint16_t>(from, to);
      case 4:
        return CopyAs<uint32_t>(from, to);
      case 8:
        return CopyAs<uint64_t>(from, to);
      default:
        FR_CHECK(false) << "no copy of " << from.dtype();
    }
  }

  void Fill(const OpContext&, float value, const Tensor& out) const override {
    VisitFloating(out.dtype(), [&](auto type) {
      using T = decltype(type);
      const T element(value);
      T* target = out.mutable_data<T>();
      const Walk walk(out.shape(), out.strides(), out.strides());
      const int64_t step = walk.to[walk.dims - 1];
      ForRuns(walk, [&](int64_t, int64_t offset, int64_t count) {
        for (int64_t i = 0; i < count; ++i) target[offset + i * step] = element;
      });
    });
  }
};

}  // namespace

const CopyKernels& Copy() {
  static const CpuCopy kernels;
  return kernels;
}

}  // namespace forerun::cpu
