// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference/copy.h"

#include <cstring>

#include "core/ops/reference/elements.h"

namespace forerun::reference {
namespace {

// Elements from the first one to row-major index `index`.
int64_t Position(const Tensor& x, int64_t index) {
  int64_t position = 0;
  for (int dim = x.rank() - 1; dim >= 0; --dim) {
    position += index % x.dim(dim) * x.strides()[dim];
    index /= x.dim(dim);
  }
  return position;
}

class ReferenceCopy final : public CopyKernels {
 public:
  void Copy(const OpContext&, const Tensor& from, const Tensor& to) const override {
    const int64_t size = SizeOf(from.dtype());
    const auto* source = static_cast<const char*>(from.raw_data());
    auto* target = static_cast<char*>(to.raw_mutable_data());
    for (int64_t i = 0; i < from.numel(); ++i) {
      std::memcpy(target + size * Position(to, i), source + size * Position(from, i), size);
    }
  }

  void Fill(const OpContext&, float value, const Tensor& out) const override {
    const Elements to(out);
    for (int64_t i = 0; i < out.numel(); ++i) to.Set(i, value);
  }
};

}  // namespace

const CopyKernels& Copy() {
  static const ReferenceCopy kernels;
  return kernels;
}

}  // namespace forerun::reference
