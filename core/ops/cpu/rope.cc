// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/rope.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/parallel_for.h"
#include "core/ops/cpu/vectors.h"

namespace forerun::cpu {
namespace {

constexpr int64_t kElementsAThread = 1 << 14;
constexpr int64_t kPositionBlock = 32;

struct Angles {
  std::vector<double> cos, sin;
  explicit Angles(int64_t n) : cos(n), sin(n) {}
};

// cos and sin of each position's angles. Trigonometry is done for the first position of each
// block and for the steps inside a block; others follow from the two by the addition theorem, in
// double, so that a row is a function of its position alone and good to float.
class AngleTable {
 public:
  AngleTable(int64_t d, const RopeOptions& options)
      : half_(d / 2), frequencies_(half_), steps_(kPositionBlock * half_) {
    for (int64_t j = 0; j < half_; ++j) {
      const double power = -2.0 * static_cast<double>(j) / static_cast<double>(d);
      frequencies_[j] = (options.inverse ? -1.0 : 1.0) * std::pow(options.base, power);
    }
    for (int64_t step = 0; step < kPositionBlock; ++step) {
      Evaluate(step, &steps_.cos[step * half_], &steps_.sin[step * half_]);
    }
  }

  // cos and sin of the angles of the first position of `position`'s block.
  Angles BlockStart(int64_t position) const {
    Angles start(half_);
    Evaluate(position / kPositionBlock * kPositionBlock, start.cos.data(), start.sin.data());
    return start;
  }

  void Row(int64_t position, const Angles& start, float* cos, float* sin) const {
    const double* step_cos = &steps_.cos[position % kPositionBlock * half_];
    const double* step_sin = &steps_.sin[position % kPositionBlock * half_];
    for (int64_t j = 0; j < half_; ++j) {
      cos[j] = static_cast<float>(start.cos[j] * step_cos[j] - start.sin[j] * step_sin[j]);
      sin[j] = static_cast<float>(start.sin[j] * step_cos[j] + start.cos[j] * step_sin[j]);
    }
  }

 private:
  void Evaluate(int64_t position, double* cos, double* sin) const {
    for (int64_t j = 0; j < half_; ++j) {
      const double angle = static_cast<double>(position) * frequencies_[j];
      cos[j] = std::cos(angle);
      sin[j] = std::sin(angle);
    }
  }

  const int64_t half_;
  std::vector<double> frequencies_;  // of a pair, radians a position; negative in the inverse
  Angles steps_;                     // of positions 0 .. kPositionBlock - 1
};

// One head: x and y are d elements, buffer has room for 2 d.
template <typename T>
void Rotate(const T* x, const float* cos, const float* sin, int64_t half, float* buffer, T* y) {
  const float* in = AsFloats(x, 2 * half, buffer);
  const float* first = in;
  const float* second = in + half;
  float* out = buffer + 2 * half;
  for (int64_t j = 0; j < half; ++j) {
    out[j] = first[j] * cos[j] - second[j] * sin[j];
    out[half + j] = second[j] * cos[j] + first[j] * sin[j];
  }
  StoreFloats(out, 2 * half, y);
}

template <typename T>
void RopeOf(const Tensor& x, const RopeOptions& options, const Tensor& y) {
  const int64_t batch = x.dim(1), heads = x.dim(2), d = x.dim(3), half = d / 2;
  const AngleTable table(d, options);
  const T* in = x.data<T>();
  T* out = y.mutable_data<T>();
  const int64_t grain =
      std::max<int64_t>(1, kElementsAThread / std::max<int64_t>(1, batch * heads * d));
  ParallelFor(x.dim(0), grain, [&](int64_t begin, int64_t end) {
    Angles start = table.BlockStart(begin);
    std::vector<float> cos(half), sin(half), buffer(2 * d);
    for (int64_t p = begin; p < end; ++p) {
      if (p % kPositionBlock == 0) start = table.BlockStart(p);
      table.Row(p, start, cos.data(), sin.data());
      for (int64_t b = 0; b < batch; ++b) {
        const T* from = in + p * x.strides()[0] + b * x.strides()[1];
        T* to = out + (p * batch + b) * heads * d;
        for (int64_t h = 0; h < heads; ++h) {
          Rotate(from + h * x.strides()[2], cos.data(), sin.data(), half, buffer.data(),
                 to + h * d);
        }
      }
    }
  });
}

class CpuRope final : public RopeKernels {
 public:
  void Rope(const OpContext&, const Tensor& x, const RopeOptions& options,
            const Tensor& y) const override {
    VisitStored(x.dtype(), [&](auto type) { RopeOf<decltype(type)>(x, options, y); });
  }
};

}  // namespace

const RopeKernels& Rope() {
  static const CpuRope kernels;
  return kernels;
}

}  // namespace forerun::cpu
