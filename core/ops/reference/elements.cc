// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference/elements.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace forerun::reference {
namespace {

// To float, such that rounding the result to 16 bits equals rounding `value` to them: an inexact
// float is moved to its neighbour with an odd last bit ("round to odd").
float RoundToOdd(double value) {
  float rounded = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(rounded) == value) return rounded;
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  if ((bits & 1u) != 0) return rounded;
  const float limit = static_cast<double>(rounded) < value
                          ? std::numeric_limits<float>::infinity()
                          : -std::numeric_limits<float>::infinity();
  return std::isinf(rounded) ? rounded : std::nextafter(rounded, limit);
}

template <typename T>
T Round(double value) {
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) {
    return static_cast<T>(value);
  } else {
    return T(RoundToOdd(value));
  }
}

}  // namespace

double Elements::operator[](int64_t index) const {
  return VisitFloating(tensor_.dtype(), [&](auto type) {
    using T = decltype(type);
    const T value = tensor_.data<T>()[Position(index)];
    if constexpr (std::is_same_v<T, double>) {
      return value;
    } else {
      return static_cast<double>(static_cast<float>(value));
    }
  });
}

void Elements::Set(int64_t index, double value) const {
  VisitFloating(tensor_.dtype(), [&](auto type) {
    using T = decltype(type);
    tensor_.mutable_data<T>()[Position(index)] = Round<T>(value);
  });
}

int64_t Elements::Position(int64_t index) const {
  if (contiguous_) return index;
  int64_t position = 0;
  for (int dim = tensor_.rank() - 1; dim >= 0; --dim) {
    position += index % tensor_.dim(dim) * tensor_.strides()[dim];
    index /= tensor_.dim(dim);
  }
  return position;
}

}  // namespace forerun::reference
