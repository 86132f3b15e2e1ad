// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/base/check.h"
#include "core/device/allocator.h"
#include "core/device/device.h"
#include "core/ops/op_context.h"
#include "core/random/random.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

// What the conformance suites of all families share: one suite a family runs on each backend and
// holds it against the reference (double precision) with a bound for each dtype.
namespace forerun::conformance {

// One backend under test, on the cpu.
struct Backend {
  std::string name;  // a word: part of test names
  const KernelTable* kernels;
};
inline std::string BackendName(const Backend& backend) { return backend.name; }

// A stream, an allocator and kernels: what a rank hands to ops.
class Host {
 public:
  explicit Host(const KernelTable& kernels) : context_{&stream_, &allocator_, &kernels} {}
  const OpContext& context() const { return context_; }
  Tensor Empty(const Shape& shape, DType dtype) const { return context_.Empty(shape, dtype); }

 private:
  InlineStream stream_{Device{}};
  CpuAllocator allocator_;
  const OpContext context_;
};

// Normal values times `stddev`, rounded to `dtype`. A different `seed` gives other values.
Tensor Random(const Host& host, const Shape& shape, DType dtype, uint64_t seed,
              double stddev = 1.0);
// The same, as a view into a larger tensor: every row of the last dim is followed by `gap` other
// elements (and with more dims every dim but the last stays regular). Those hold NaN, so that
// a kernel that reads or counts them shows.
Tensor RandomStrided(const Host& host, const Shape& shape, DType dtype, uint64_t seed,
                     int64_t gap = 3, double stddev = 1.0);
// int32 in [low, high).
Tensor RandomTokens(const Host& host, const Shape& shape, int32_t low, int32_t high, uint64_t seed);
// to = from, of one shape; strided at will.
void CopyValues(const Tensor& from, const Tensor& to);
// A contiguous copy with memory of its own.
Tensor Clone(const Host& host, const Tensor& x);
// The same in fp64: from such inputs the reference gives results that no dtype has rounded.
Tensor AsDoubles(const Host& host, const Tensor& x);
Tensor FromValues(const Host& host, const Shape& shape, DType dtype,
                  std::initializer_list<double> values);

// All elements, row-major, exactly.
std::vector<double> Values(const Tensor& x);

// Rounding unit: the largest relative error of storing one value (2^-24, 2^-8, 2^-11).
double Unit(DType dtype);

// Expects |actual - expected| <= bound(dtype of actual) * max(1, scale) for every element, where
// `scale` is the largest magnitude in `expected`; NaN equals nothing. `units` is the bound counted
// in rounding units of actual's dtype, plus `fp32_units` of those of fp32: what is accumulated
// before the one rounding at the end.
void ExpectClose(const Tensor& actual, const Tensor& expected, double units, double fp32_units,
                 const std::string& what);

// Expects equal shapes, dtypes and bits.
void ExpectSameBits(const Tensor& a, const Tensor& b, const std::string& what);

// "fp32", "bf16", "fp16".
std::string DTypeName(DType dtype);
inline std::vector<DType> StoredDTypes() { return {DType::kF32, DType::kBF16, DType::kF16}; }

}  // namespace forerun::conformance
