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

// IEEE half precision as storage, with the same rules. (_Float16 would do, but for clang 14.)
struct Float16 {
  uint16_t bits;

  Float16() = default;
  explicit Float16(float value) : bits(FromFloat(value)) {}
  explicit operator float() const {
    const uint32_t magnitude = bits & 0x7fffu;
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    float value = BitCast<float>(magnitude << 13) * 0x1p112f;  // exact, subnormals too
    if (magnitude >= 0x7c00u) value = BitCast<float>(0x7f800000u | (magnitude << 13));
    return BitCast<float>(BitCast<uint32_t>(value) | sign);
  }

 private:
  template <typename To, typename From>
  static To BitCast(From from) {
    To to;
    static_assert(sizeof(To) == sizeof(From));
    std::memcpy(&to, &from, sizeof to);
    return to;
  }
  static uint16_t FromFloat(float value) {
    const uint32_t all = BitCast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>((all >> 16) & 0x8000u);
    uint32_t u = all & 0x7fffffffu;
    if (u > 0x7f800000u) return sign | 0x7e00u;   // NaN
    if (u >= 0x477ff000u) return sign | 0x7c00u;  // 65520 and more round to infinity
    if (u < 0x38800000u) {                        // subnormal: the addition rounds to 2^-24
      u = BitCast<uint32_t>(BitCast<float>(u) + 0.5f) - 0x3f000000u;
      return sign | static_cast<uint16_t>(u);
    }
    u += 0xfffu + ((u >> 13) & 1u);
    return sign | static_cast<uint16_t>((u - 0x38000000u) >> 13);
  }
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
