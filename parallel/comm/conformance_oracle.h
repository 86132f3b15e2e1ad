// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"
#include "gtest/gtest.h"
#include "parallel/comm/process_group.h"

// What collectives should give, computed by one thread, element by element, from a definition of
// its own of the order that process_group.h fixes.
namespace forerun::comm {

// Element `index` of what `rank` brings to operation `seed`: any rank can compute any other's.
// Floating values spread over 17 powers of two, so that the order of additions shows in the bits.
template <typename T>
T ValueOf(uint64_t seed, int rank, int64_t index) {
  uint64_t hash = seed * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(rank) * 0xbf58476d1ce4e5b9u +
                  static_cast<uint64_t>(index) + 1;
  for (int round = 0; round < 3; ++round) hash = (hash ^ (hash >> 31)) * 0x94d049bb133111ebu;
  hash ^= hash >> 29;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(hash % 2001) - static_cast<T>(1000);
  } else {
    const double fraction = 1.0 + static_cast<double>(hash >> 41) * 0x1p-23;
    const double value = std::ldexp(fraction, static_cast<int>(hash % 17) - 8);
    return static_cast<T>(static_cast<float>(hash & (1u << 20) ? value : -value));
  }
}

template <typename T>
std::vector<T> ValuesOf(uint64_t seed, int rank, int64_t numel) {
  std::vector<T> values(numel);
  for (int64_t i = 0; i < numel; ++i) values[i] = ValueOf<T>(seed, rank, i);
  return values;
}

// 16-bit types are added as floats.
template <typename T>
using SumType = std::conditional_t<sizeof(T) == 2, float, T>;

template <typename T>
SumType<T> TreeOracle(uint64_t seed, int begin, int end, int64_t index, ReduceOp op) {
  if (end - begin == 1) return static_cast<SumType<T>>(ValueOf<T>(seed, begin, index));
  int half = 1;
  while (2 * half < end - begin) half *= 2;
  const SumType<T> a = TreeOracle<T>(seed, begin, begin + half, index, op);
  const SumType<T> b = TreeOracle<T>(seed, begin + half, end, index, op);
  return op == ReduceOp::kSum ? a + b : (a > b ? a : b);
}

// Elements [begin, begin + numel) of the sum or maximum over `ranks` ranks.
template <typename T>
std::vector<T> ReduceOracle(uint64_t seed, int ranks, int64_t begin, int64_t numel, ReduceOp op) {
  std::vector<T> values(numel);
  for (int64_t i = 0; i < numel; ++i) {
    values[i] = static_cast<T>(TreeOracle<T>(seed, 0, ranks, begin + i, op));
  }
  return values;
}

template <typename T>
Tensor TensorOf(const std::vector<T>& values) {
  const auto owner = std::make_shared<std::vector<T>>(values);
  return Tensor::Wrap(owner, owner->data(), Shape{static_cast<int64_t>(values.size())},
                      DTypeOf<T>::value);
}

template <typename T>
Tensor Zeros(int64_t numel) {
  return TensorOf(std::vector<T>(numel, T{}));
}

// Bit for bit.
template <typename T>
void ExpectValues(const std::vector<T>& expected, const Tensor& tensor) {
  ASSERT_EQ(static_cast<int64_t>(expected.size()), tensor.numel());
  const T* values = tensor.data<T>();
  for (size_t i = 0; i < expected.size(); ++i) {
    if (std::memcmp(&expected[i], &values[i], sizeof(T)) == 0) continue;
    ADD_FAILURE() << NameOf(DTypeOf<T>::value) << " element " << i << " of " << expected.size()
                  << ": expected " << static_cast<double>(SumType<T>(expected[i])) << ", got "
                  << static_cast<double>(SumType<T>(values[i]));
    return;
  }
}

// Calls visit(T{}) for each type that can be summed.
template <typename Visitor>
void ForEachSummable(const Visitor& visit) {
  visit(float{});
  visit(double{});
  visit(BFloat16{});
  visit(Float16{});
  visit(int32_t{});
  visit(int64_t{});
}

}  // namespace forerun::comm
