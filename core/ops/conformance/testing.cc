// SPDX-License-Identifier: Apache-2.0
#include "core/ops/conformance/testing.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/ops/reference/elements.h"
#include "gtest/gtest.h"

namespace forerun::conformance {
namespace {

using reference::Elements;

void FillRandom(const Tensor& x, uint64_t seed, double stddev) {
  std::vector<float> values(static_cast<size_t>(x.numel()));
  FillNormal(RandomKey::Root(seed), 0, stddev, absl::MakeSpan(values));
  const Elements out(x);
  for (int64_t i = 0; i < x.numel(); ++i) out.Set(i, values[static_cast<size_t>(i)]);
}

void FillNan(const Tensor& x) {
  const Elements out(x);
  for (int64_t i = 0; i < x.numel(); ++i) out.Set(i, std::numeric_limits<double>::quiet_NaN());
}

const char* Bytes(const Tensor& x) { return static_cast<const char*>(x.raw_data()); }

}  // namespace

Tensor Random(const Host& host, const Shape& shape, DType dtype, uint64_t seed, double stddev) {
  Tensor x = host.Empty(shape, dtype);
  FillRandom(x, seed, stddev);
  return x;
}

Tensor RandomStrided(const Host& host, const Shape& shape, DType dtype, uint64_t seed, int64_t gap,
                     double stddev) {
  Shape padded = shape;
  padded.set(-1, shape[-1] + gap);
  const Tensor whole = host.Empty(padded, dtype);
  FillNan(whole);
  Tensor x = whole.Slice(-1, 0, shape[-1]);
  FillRandom(x, seed, stddev);
  return x;
}

Tensor RandomTokens(const Host& host, const Shape& shape, int32_t low, int32_t high,
                    uint64_t seed) {
  Tensor x = host.Empty(shape, DType::kI32);
  int32_t* out = x.mutable_data<int32_t>();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double u = UniformAt(RandomKey::Root(seed), static_cast<uint64_t>(i));
    out[i] = low + static_cast<int32_t>(u * (high - low));
  }
  return x;
}

void CopyValues(const Tensor& from, const Tensor& to) {
  const Elements source(from), target(to);
  for (int64_t i = 0; i < from.numel(); ++i) target.Set(i, source[i]);
}

Tensor Clone(const Host& host, const Tensor& x) {
  Tensor copy = host.Empty(x.shape(), x.dtype());
  CopyValues(x, copy);
  return copy;
}

Tensor AsDoubles(const Host& host, const Tensor& x) {
  Tensor copy = host.Empty(x.shape(), DType::kF64);
  const Elements from(x), to(copy);
  for (int64_t i = 0; i < x.numel(); ++i) to.Set(i, from[i]);
  return copy;
}

Tensor FromValues(const Host& host, const Shape& shape, DType dtype,
                  std::initializer_list<double> values) {
  FR_CHECK_EQ(shape.numel(), static_cast<int64_t>(values.size())) << "values of a tensor";
  Tensor x = host.Empty(shape, dtype);
  const Elements out(x);
  int64_t i = 0;
  for (double value : values) out.Set(i++, value);
  return x;
}

std::vector<double> Values(const Tensor& x) {
  const Elements in(x);
  std::vector<double> values(static_cast<size_t>(x.numel()));
  for (int64_t i = 0; i < x.numel(); ++i) values[static_cast<size_t>(i)] = in[i];
  return values;
}

double Unit(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF16:
      return 0x1p-11;
    default:
      return 0x1p-24;
  }
}

void ExpectClose(const Tensor& actual, const Tensor& expected, double units, double fp32_units,
                 const std::string& what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  const std::vector<double> a = Values(actual), b = Values(expected);
  double scale = 1.0;
  for (double value : b) scale = std::max(scale, std::abs(value));
  const double bound = scale * (units * Unit(actual.dtype()) + fp32_units * Unit(DType::kF32));
  int64_t wrong = 0, worst = 0;
  double largest = -1.0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = std::abs(a[i] - b[i]);
    if (!(error <= bound)) ++wrong;
    if (!(error <= largest)) {
      largest = error;
      worst = static_cast<int64_t>(i);
    }
  }
  EXPECT_EQ(wrong, 0) << what << ": of " << a.size() << " elements of " << actual.shape() << ' '
                      << actual.dtype() << ", the worst is [" << worst
                      << "] = " << a[static_cast<size_t>(worst)] << ", expected "
                      << b[static_cast<size_t>(worst)] << " within " << bound;
}

void ExpectSameBits(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  ASSERT_EQ(a.dtype(), b.dtype()) << what;
  ASSERT_TRUE(a.is_contiguous() && b.is_contiguous()) << what;
  const int64_t size = SizeOf(a.dtype());
  for (int64_t i = 0; i < a.numel(); ++i) {
    ASSERT_EQ(std::memcmp(Bytes(a) + i * size, Bytes(b) + i * size, static_cast<size_t>(size)), 0)
        << what << ": element " << i << " of " << a.shape() << ' ' << a.dtype();
  }
}

std::string DTypeName(DType dtype) { return std::string(NameOf(dtype)); }

}  // namespace forerun::conformance
