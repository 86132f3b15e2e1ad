// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>

#include "absl/types/span.h"

namespace forerun {

// The extents of a tensor, outermost dim first. At most kMaxRank dims, held in place. Extents are
// not negative; a negative index counts from the last dim (-1).
class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;  // rank 0: a scalar, one element
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(absl::Span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int dim) const { return dims_[Index(dim)]; }
  void set(int dim, int64_t extent);
  int64_t numel() const;
  absl::Span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  // Elements between neighbours along each dim of a row-major tensor of this shape.
  Shape ContiguousStrides() const;
  std::string ToString() const;  // "[2, 3]"

  bool operator==(const Shape& other) const;

 private:
  int Index(int dim) const;

  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

std::ostream& operator<<(std::ostream& out, const Shape& shape);

// A box inside a global shape: the part [offset, offset + extent) along every dim.
struct Box {
  Shape offset;
  Shape extent;

  static Box Whole(const Shape& shape);
  bool Covers(const Shape& global) const { return extent == global; }
  bool operator==(const Box&) const = default;
};

}  // namespace forerun
