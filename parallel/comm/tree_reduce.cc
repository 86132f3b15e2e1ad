// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/tree_reduce.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/base/check.h"

namespace forerun::comm {
namespace {

constexpr int64_t kChunk = 512;  // elements summed at a time: the tree's partial sums stay in cache

// What values of T are added as.
template <typename T>
struct SumOf {
  using Type = T;
};
template <>
struct SumOf<BFloat16> {
  using Type = float;
};
template <>
struct SumOf<Float16> {
  using Type = float;
};

template <typename T>
T Add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;  // whose overflow is defined
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

template <typename T>
T Max(T a, T b) {
  return a > b || a != a ? a : b;
}

int LargestPowerOfTwoBelow(int n) {
  int power = 1;
  while (power * 2 < n) power *= 2;
  return power;
}

template <typename T>
void ReduceChunk(absl::Span<const T* const> inputs, int64_t begin, int64_t numel, ReduceOp op,
                 typename SumOf<T>::Type* out) {
  using Sum = typename SumOf<T>::Type;
  if (inputs.size() == 1) {
    for (int64_t i = 0; i < numel; ++i) out[i] = static_cast<Sum>(inputs[0][begin + i]);
    return;
  }
  const int split = LargestPowerOfTwoBelow(static_cast<int>(inputs.size()));
  Sum right[kChunk];
  ReduceChunk<T>(inputs.subspan(0, split), begin, numel, op, out);
  ReduceChunk<T>(inputs.subspan(split), begin, numel, op, right);
  if (op == ReduceOp::kSum) {
    for (int64_t i = 0; i < numel; ++i) out[i] = Add(out[i], right[i]);
  } else {
    for (int64_t i = 0; i < numel; ++i) out[i] = Max(out[i], right[i]);
  }
}

template <typename T>
void Reduce(absl::Span<const Tensor> inputs, int64_t begin, ReduceOp op, const Tensor& output) {
  std::vector<const T*> data;
  for (const Tensor& input : inputs) data.push_back(input.data<T>());
  T* out = output.mutable_data<T>();
  if (data.size() == 1) {  // the identity
    if (data[0] + begin != out) std::copy_n(data[0] + begin, output.numel(), out);
    return;
  }
  typename SumOf<T>::Type sums[kChunk];
  for (int64_t i = 0; i < output.numel(); i += kChunk) {
    const int64_t numel = std::min(kChunk, output.numel() - i);
    ReduceChunk<T>(data, begin + i, numel, op, sums);
    for (int64_t j = 0; j < numel; ++j) out[i + j] = static_cast<T>(sums[j]);
  }
}

}  // namespace

void TreeReduce(absl::Span<const Tensor> inputs, int64_t begin, ReduceOp op, const Tensor& output) {
  switch (output.dtype()) {
    case DType::kI32:
      return Reduce<int32_t>(inputs, begin, op, output);
    case DType::kI64:
      return Reduce<int64_t>(inputs, begin, op, output);
    default:
      return VisitFloating(output.dtype(),
                           [&](auto zero) { Reduce<decltype(zero)>(inputs, begin, op, output); });
  }
}

}  // namespace forerun::comm
