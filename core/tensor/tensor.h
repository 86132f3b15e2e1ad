// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "core/base/check.h"
#include "core/device/allocator.h"
#include "core/device/device.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace forerun {

// A strided view of typed memory on one device, cheap to copy. Copies and views share the memory
// and keep its owner alive; the owner may be an allocation, a mapped file or a parameter lease.
//
// Invariants
//  1. A defined tensor's elements lie inside its owner's memory. A meta tensor has none: asking
//     for its values is a failed check that names the function which asked.
//  2. A read-only tensor gives no mutable pointer, nor does any view of it.
//
// Threads: a Tensor object belongs to one thread; several may hold copies. Who may touch the
// elements when is the business of whoever shares them (a stream, a Work, a lease).
class Tensor {
 public:
  enum class Access : uint8_t { kReadWrite, kReadOnly };

  // The place in the source that asks for a tensor's elements.
  struct Reader {
    const char* function;
    const char* file;
    int line;

    static constexpr Reader Here(const char* function = __builtin_FUNCTION(),
                                 const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
      return Reader{function, file, line};
    }
  };

  Tensor() = default;  // undefined

  // Uninitialised contiguous memory. `allocator` and `stream` must outlive the tensor: the memory
  // goes back to `allocator` in the order of `stream` when the last view is gone.
  static Tensor Empty(Allocator& allocator, Stream& stream, const Shape& shape, DType dtype);

  // A contiguous view of memory that somebody else owns; `owner` may be null for memory known to
  // live longer. `data` is null on meta.
  static Tensor Wrap(std::shared_ptr<const void> owner, void* data, const Shape& shape, DType dtype,
                     Device device = {}, Access access = Access::kReadWrite);

  bool defined() const { return defined_; }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }  // in elements
  int rank() const { return shape_.rank(); }
  int64_t dim(int index) const { return shape_[index]; }
  int64_t numel() const { return shape_.numel(); }
  int64_t bytes() const { return numel() * SizeOf(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  bool is_meta() const { return device_.kind == DeviceKind::kMeta; }
  bool is_contiguous() const;
  // Neighbours along the last dim are neighbours in memory.
  bool has_contiguous_rows() const { return rank() == 0 || shape_[-1] <= 1 || strides_[-1] == 1; }
  bool read_only() const { return access_ == Access::kReadOnly; }

  // The first element. `reader` is filled in by the compiler: it names who asked where a check
  // fails.
  template <typename T>
  const T* data(Reader reader = Reader::Here()) const {
    return static_cast<const T*>(Typed(DTypeOf<T>::value, reader));
  }
  template <typename T>
  T* mutable_data(Reader reader = Reader::Here()) const {
    Typed(DTypeOf<T>::value, reader);
    return static_cast<T*>(raw_mutable_data(reader));
  }
  const void* raw_data(Reader reader = Reader::Here()) const;
  void* raw_mutable_data(Reader reader = Reader::Here()) const;

  // Views. None copies.
  Tensor View(const Shape& shape) const;  // contiguous tensors; the same number of elements
  // Elements [begin, end) along `dim`.
  Tensor Slice(int dim, int64_t begin, int64_t end) const;
  // One dim of extent a*b seen as two of extents a (outer) and b.
  Tensor SplitDim(int dim, int64_t outer, int64_t inner) const;
  // The same elements seen as rows: [product of the leading dims, dim(-1)]. Needs leading dims that
  // collapse: each a whole number of the next apart.
  Tensor AsMatrix() const;
  Tensor AsReadOnly() const;
  // The same elements, kept alive by `owner` instead.
  Tensor OwnedBy(std::shared_ptr<const void> owner) const;

  // Every byte becomes zero. Contiguous tensors on the host; of meta ones there is nothing to
  // clear.
  void Clear() const;

 private:
  const void* Typed(DType dtype, Reader reader) const;

  std::shared_ptr<const void> owner_;
  void* data_ = nullptr;
  Shape shape_;
  Shape strides_;
  DType dtype_ = DType::kF32;
  Device device_;
  Access access_ = Access::kReadWrite;
  bool defined_ = false;
};

}  // namespace forerun
