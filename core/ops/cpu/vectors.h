// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/base/check.h"
#include "core/tensor/dtype.h"

// Rows of stored elements (fp32, bf16, fp16) as floats, the type that all CPU kernels compute in.
// Plain loops that the compiler turns into vector code.
namespace forerun::cpu {

template <typename T>
void LoadFloats(const T* from, int64_t count, float* to) {
  if constexpr (std::is_same_v<T, float>) {
    std::copy(from, from + count, to);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
  }
}

// Each value is rounded once, to nearest even.
template <typename T>
void StoreFloats(const float* from, int64_t count, T* to) {
  if constexpr (std::is_same_v<T, float>) {
    if (from != to) std::copy(from, from + count, to);
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = T(from[i]);
  }
}

// `from` itself where it holds floats, otherwise `buffer`, filled with its `count` values.
template <typename T>
const float* AsFloats(const T* from, int64_t count, float* buffer) {
  if constexpr (std::is_same_v<T, float>) {
    return from;
  } else {
    LoadFloats(from, count, buffer);
    return buffer;
  }
}

// Calls visit(T{}) with the C++ type of a dtype that CPU kernels compute with: fp32, bf16, fp16.
template <typename Visitor>
auto VisitStored(DType dtype, Visitor&& visit) {
  switch (dtype) {
    case DType::kBF16:
      return visit(BFloat16{});
    case DType::kF16:
      return visit(Float16{});
    default:
      FR_CHECK_EQ(dtype, DType::kF32) << "CPU kernels compute with fp32, bf16 and fp16";
      return visit(float{});
  }
}

}  // namespace forerun::cpu
