// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference/rope.h"

#include <cmath>

#include "core/ops/reference/elements.h"

namespace forerun::reference {
namespace {

class ReferenceRope final : public RopeKernels {
 public:
  void Rope(const OpContext&, const Tensor& x, const RopeOptions& options,
            const Tensor& y) const override {
    const Elements from(x), to(y);
    const int64_t d = x.dim(3), half = d / 2;
    const int64_t heads_a_position = x.dim(1) * x.dim(2);
    const double sign = options.inverse ? -1.0 : 1.0;
    for (int64_t head = 0; head < x.dim(0) * heads_a_position; ++head) {
      const double position = static_cast<double>(head / heads_a_position);
      for (int64_t j = 0; j < half; ++j) {
        const double angle =
            sign * position *
            std::pow(options.base, -2.0 * static_cast<double>(j) / static_cast<double>(d));
        const int64_t first = head * d + j, second = first + half;
        const double a = from[first], b = from[second];
        to.Set(first, a * std::cos(angle) - b * std::sin(angle));
        to.Set(second, b * std::cos(angle) + a * std::sin(angle));
      }
    }
  }
};

}  // namespace

const RopeKernels& Rope() {
  static const ReferenceRope kernels;
  return kernels;
}

}  // namespace forerun::reference
