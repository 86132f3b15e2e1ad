// SPDX-License-Identifier: Apache-2.0
#include "core/tensor/tensor.h"

#include <array>
#include <cstring>
#include <utility>

namespace forerun {
namespace {

// Owns one allocation and gives it back in stream order.
class Allocation {
 public:
  Allocation(Allocator& allocator, Stream& stream, size_t bytes)
      : allocator_(allocator),
        stream_(stream),
        bytes_(bytes),
        data_(allocator.Allocate(bytes, stream)) {}
  ~Allocation() { allocator_.Free(data_, bytes_, stream_); }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;
  void* data() const { return data_; }

 private:
  Allocator& allocator_;
  Stream& stream_;
  const size_t bytes_;
  void* const data_;
};

std::ostream& operator<<(std::ostream& out, const Tensor::Reader& reader) {
  return out << reader.function << " (" << reader.file << ':' << reader.line << ')';
}

}  // namespace

Tensor Tensor::Empty(Allocator& allocator, Stream& stream, const Shape& shape, DType dtype) {
  const size_t bytes = static_cast<size_t>(shape.numel() * SizeOf(dtype));
  auto allocation = std::make_shared<Allocation>(allocator, stream, bytes);
  void* data = allocation->data();
  return Wrap(std::move(allocation), data, shape, dtype, allocator.device());
}

Tensor Tensor::Wrap(std::shared_ptr<const void> owner, void* data, const Shape& shape, DType dtype,
                    Device device, Access access) {
  Tensor tensor;
  tensor.owner_ = std::move(owner);
  tensor.data_ = data;
  tensor.shape_ = shape;
  tensor.strides_ = shape.ContiguousStrides();
  tensor.dtype_ = dtype;
  tensor.device_ = device;
  tensor.access_ = access;
  tensor.defined_ = true;
  return tensor;
}

bool Tensor::is_contiguous() const {
  if (numel() == 0) return true;
  const Shape contiguous = shape_.ContiguousStrides();
  for (int i = 0; i < rank(); ++i) {
    if (shape_[i] != 1 && strides_[i] != contiguous[i]) return false;
  }
  return true;
}

const void* Tensor::raw_data(Reader reader) const {
  FR_CHECK(defined_) << reader << " reads an undefined tensor";
  FR_CHECK(!is_meta()) << reader << " reads the values of a meta tensor of shape " << shape_
                       << ", which has none";
  return data_;
}

void* Tensor::raw_mutable_data(Reader reader) const {
  FR_CHECK(!read_only()) << reader << " writes to a read-only tensor of shape " << shape_;
  return const_cast<void*>(raw_data(reader));
}

const void* Tensor::Typed(DType dtype, Reader reader) const {
  FR_CHECK_EQ(dtype, dtype_) << reader << " takes elements of a tensor of shape " << shape_;
  return raw_data(reader);
}

Tensor Tensor::View(const Shape& shape) const {
  FR_CHECK(is_contiguous()) << "View needs a contiguous tensor";
  FR_CHECK_EQ(shape.numel(), numel()) << "View of " << shape_ << " as " << shape;
  Tensor view = *this;
  view.shape_ = shape;
  view.strides_ = shape.ContiguousStrides();
  return view;
}

Tensor Tensor::Slice(int dim, int64_t begin, int64_t end) const {
  FR_CHECK(begin >= 0 && begin <= end && end <= shape_[dim])
      << "slice [" << begin << ", " << end << ") of dim " << dim << " of " << shape_;
  Tensor view = *this;
  view.shape_.set(dim, end - begin);
  if (data_ != nullptr) {
    view.data_ = static_cast<char*>(data_) + begin * strides_[dim] * SizeOf(dtype_);
  }
  return view;
}

Tensor Tensor::SplitDim(int dim, int64_t outer, int64_t inner) const {
  if (dim < 0) dim += rank();
  FR_CHECK_EQ(outer * inner, shape_[dim]) << "split of dim " << dim << " of " << shape_;
  std::array<int64_t, Shape::kMaxRank + 1> extents{};
  std::array<int64_t, Shape::kMaxRank + 1> strides{};
  int out = 0;
  for (int i = 0; i < rank(); ++i) {
    if (i == dim) {
      extents[out] = outer;
      strides[out++] = strides_[i] * inner;
    }
    extents[out] = i == dim ? inner : shape_[i];
    strides[out++] = strides_[i];
  }
  Tensor view = *this;
  view.shape_ = Shape(absl::MakeConstSpan(extents.data(), out));
  view.strides_ = Shape(absl::MakeConstSpan(strides.data(), out));
  return view;
}

Tensor Tensor::AsMatrix() const {
  FR_CHECK_GE(rank(), 1) << "AsMatrix of a scalar";
  // Dims of extent one have a stride too, but it tells nothing.
  int64_t rows = 1;
  int64_t row_stride = 0;
  for (int i = rank() - 2; i >= 0; --i) {
    if (shape_[i] == 1) continue;
    if (rows == 1) row_stride = strides_[i];
    FR_CHECK(numel() == 0 || strides_[i] == rows * row_stride)
        << "the leading dims of " << shape_ << " with strides " << strides_ << " do not collapse";
    rows *= shape_[i];
  }
  Tensor view = *this;
  view.shape_ = Shape{rows, shape_[-1]};
  view.strides_ = Shape{rows == 1 ? shape_[-1] : row_stride, strides_[-1]};
  return view;
}

Tensor Tensor::OwnedBy(std::shared_ptr<const void> owner) const {
  Tensor tensor = *this;
  tensor.owner_ = std::move(owner);
  return tensor;
}

void Tensor::Clear() const {
  FR_CHECK(is_contiguous()) << "a strided tensor of shape " << shape_ << " is cleared";
  if (!is_meta() && numel() > 0) std::memset(raw_mutable_data(), 0, static_cast<size_t>(bytes()));
}

Tensor Tensor::AsReadOnly() const {
  Tensor view = *this;
  view.access_ = Access::kReadOnly;
  return view;
}

}  // namespace forerun
