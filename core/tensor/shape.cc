// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/shape.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/check.h"

namespace forerun {

Shape::Shape(std::initializer_list<int64_t> dims)
    : Shape(absl::Span<const int64_t>(dims.begin(), dims.size())) {}

Shape::Shape(absl::Span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  FR_CHECK_LE(rank_, kMaxRank) << "rank";
  for (int i = 0; i < rank_; ++i) set(i, dims[i]);
}

int Shape::Index(int dim) const {
  const int index = dim < 0 ? dim + rank_ : dim;
  FR_CHECK(index >= 0 && index < rank_) << "dim " << dim << " of rank " << rank_;
  return index;
}

void Shape::set(int dim, int64_t extent) {
  FR_CHECK_GE(extent, 0) << "extent of dim " << dim;
  dims_[Index(dim)] = extent;
}

int64_t Shape::numel() const {
  int64_t numel = 1;
  for (int64_t extent : dims()) numel *= extent;
  return numel;
}

Shape Shape::ContiguousStrides() const {
  Shape strides = *this;
  int64_t stride = 1;
  for (int dim = rank_ - 1; dim >= 0; --dim) {
    strides.dims_[dim] = stride;
    stride *= dims_[dim];
  }
  return strides;
}

std::string Shape::ToString() const { return absl::StrCat("[", absl::StrJoin(dims(), ", "), "]"); }

bool Shape::operator==(const Shape& other) const { return dims() == other.dims(); }

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.ToString(); }

Box Box::Whole(const Shape& shape) {
  Box box{shape, shape};
  for (int dim = 0; dim < shape.rank(); ++dim) box.offset.set(dim, 0);
  return box;
}

}  // namespace forerun
