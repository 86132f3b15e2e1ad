// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <ostream>

#include "absl/strings/string_view.h"
#include "core/base/check.h"

namespace forerun {

enum class DType : uint8_t { kF32, kBF16, kF16, kF64, kI32, kI64, kU8 };

int64_t SizeOf(DType dtype);                  // bytes of one element
absl::string_view NameOf(DType dtype);        // "fp32", "bf16", ...
bool IsFloating(DType dtype);
std::ostream& operator<<(std::ostream& out, DType dtype);

// bfloat16 as storage: arithmetic is done in float. To float exact, from float to nearest even;
// NaN stays NaN.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  explicit BFloat16(float value) {
    uint32_t u;
    std::memcpy(&u, &value, sizeof u);
    if (value != value) {
      bits = static_cast<uint16_t>((u >> 16) | 0x40u);
    } else {
      bits = static_cast<uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    }
  }
  explicit operator float() const {
    const uint32_t u = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &u, sizeof value);
    return value;
  }
};

// IEEE half precision as storage, with the same rules.
struct Float16 {
  uint16_t bits;

  Float16() = default;
  explicit Float16(float value);
  explicit operator float() const;
};

// The DType that a C++ type stores.
template <typename T>
struct DTypeOf;
template <> struct DTypeOf<float> { static constexpr DType value = DType::kF32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::kF64; };
template <> struct DTypeOf<BFloat16> { static constexpr DType value = DType::kBF16; };
template <> struct DTypeOf<Float16> { static constexpr DType value = DType::kF16; };
template <> struct DTypeOf<int32_t> { static constexpr DType value = DType::kI32; };
template <> struct DTypeOf<int64_t> { static constexpr DType value = DType::kI64; };
template <> struct DTypeOf<uint8_t> { static constexpr DType value = DType::kU8; };

// Calls visit(T{}) with the C++ type of a floating dtype.
template <typename Visitor>
auto VisitFloating(DType dtype, Visitor&& visit) {
  switch (dtype) {
    case DType::kF32:
      return visit(float{});
    case DType::kBF16:
      return visit(BFloat16{});
    case DType::kF16:
      return visit(Float16{});
    case DType::kF64:
      return visit(double{});
    default:
      FR_CHECK(false) << "a floating dtype is needed, got " << dtype;
      return visit(float{});
  }
}

}  // namespace forerun
