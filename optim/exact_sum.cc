// SPDX-License-Identifier: Apache-2.0
#include "optim/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/base/parallel_for.h"

namespace forerun {
namespace {

// Of at most a block, in a fixed order.
inline double SumOfSquares(const float* values, int64_t count) {
  constexpr int64_t kLanes = 8;
  double lanes[kLanes] = {};
  const int64_t whole = count / kLanes * kLanes;
  for (int64_t i = 0; i < whole; i += kLanes) {
    double squares[kLanes];
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      squares[lane] = double{values[i + lane]} * double{values[i + lane]};
    }
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += squares[lane];
  }
  for (int64_t i = whole; i < count; ++i)
    lanes[i % kLanes] += double{values[i]} * double{values[i]};
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) +
         ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

double BlockSum(absl::Span<const float> values, int64_t block) {
  const float* first = values.data() + block * kNormBlock;
  const int64_t left = static_cast<int64_t>(values.size()) - block * kNormBlock;
  // A length that the compiler knows unrolls the loop.
  return left >= kNormBlock ? SumOfSquares(first, kNormBlock) : SumOfSquares(first, left);
}

}  // namespace

void ExactSum::Add(double value) {
  if (!std::isfinite(value)) {
    ++words_[kLimbs];
    return;
  }
  FR_CHECK_GE(value, 0.0) << "exact sums are of values that are not negative";
  // value = mantissa * 2^(exponent - 1075), as IEEE 754 stores it.
  const auto bits = std::bit_cast<uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  uint64_t mantissa = bits & ((uint64_t{1} << 52) - 1);
  if (exponent != 0) mantissa |= uint64_t{1} << 52;
  int bit = std::max(exponent, 1) - 1075 - kLowestBit;
  if (bit < 0) {
    mantissa = bit <= -64 ? 0 : mantissa >> -bit;
    bit = 0;
  }
  FR_CHECK_LT(bit / 32 + 2, kLimbs) << "exact sum out of range: " << value;
  // The mantissa shifted by up to 31 bits spans at most three limbs.
  const unsigned __int128 shifted = static_cast<unsigned __int128>(mantissa) << (bit % 32);
  for (int i = 0; i < 3; ++i) {
    words_[bit / 32 + i] += static_cast<int64_t>(static_cast<uint32_t>(shifted >> (32 * i)));
  }
}

void ExactSum::Add(const ExactSum& other) {
  for (size_t i = 0; i < words_.size(); ++i) words_[i] += other.words_[i];
}

double ExactSum::Value() const {
  if (words_[kLimbs] != 0) return std::numeric_limits<double>::quiet_NaN();
  // Carry, so that every limb is below 2^32, then take the highest 64 bits and a sticky bit.
  std::array<uint64_t, kLimbs + 1> digits{};
  uint64_t carry = 0;
  for (int i = 0; i < kLimbs; ++i) {
    const uint64_t limb = static_cast<uint64_t>(words_[i]) + carry;
    digits[i] = limb & 0xffffffffu;
    carry = limb >> 32;
  }
  digits[kLimbs] = carry;
  int top = kLimbs;
  while (top >= 0 && digits[top] == 0) --top;
  if (top < 0) return 0.0;
  // Three limbs hold at least 65 significant bits: more than a double's 53 and its rounding bits.
  unsigned __int128 head = 0;
  for (int i = 0; i < 3; ++i) head = (head << 32) | (top - i >= 0 ? digits[top - i] : 0);
  bool sticky = false;
  for (int i = top - 3; i >= 0; --i) sticky |= digits[i] != 0;
  int shift = 0;
  while ((head >> shift) >> 62 != 0) ++shift;
  const bool lost = (head & ((static_cast<unsigned __int128>(1) << shift) - 1)) != 0;
  const auto rounded = static_cast<int64_t>(head >> shift) | ((sticky || lost) ? 1 : 0);
  return std::ldexp(static_cast<double>(rounded), shift + 32 * (top - 2) + kLowestBit);
}

void AddSquares(absl::Span<const float> values, ExactSum& sum) {
  constexpr int64_t kGrain = 64;  // blocks
  const auto blocks = static_cast<int64_t>((values.size() + kNormBlock - 1) / kNormBlock);
  Mutex mutex;
  ParallelFor(blocks, kGrain, [&](int64_t begin, int64_t end) {
    ExactSum part;
    // Sums first, for some blocks at a time: the vector code of one and the integers of another do
    // not wait for each other.
    double sums[kGrain];
    for (int64_t first = begin; first < end; first += kGrain) {
      const int64_t count = std::min(kGrain, end - first);
      for (int64_t i = 0; i < count; ++i) sums[i] = BlockSum(values, first + i);
      for (int64_t i = 0; i < count; ++i) part.Add(sums[i]);
    }
    MutexLock lock(&mutex);
    sum.Add(part);  // exact: whichever part comes first
  });
}

}  // namespace forerun
