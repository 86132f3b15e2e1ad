// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/config.h"

// What the machine can do, to hold a training step against: each measured with the calling thread's
// loop threads, in the run that it is compared in.
namespace forerun {

// y = x w^T with w [n, k], and how often a forward pass does it.
struct LinearShape {
  int64_t n = 0;
  int64_t k = 0;
  int64_t count = 1;

  bool operator==(const LinearShape&) const = default;
};
// Of a whole model: the linear layers and the head.
std::vector<LinearShape> LinearShapes(const GptConfig& config);

// Products of a training step: three of 2 m n k for each linear layer (the output and the gradients
// of x and of w), and of attention, causal, 3 (2 + 2) s / 2 a token and element of the heads.
int64_t LinearFlops(const GptConfig& config, int64_t tokens);
int64_t AttentionFlops(const GptConfig& config, int64_t tokens);

// The matmul library by itself, on plain row-major matrices, without epilogues: what the three
// products of every layer of a step take. Each shape is run once a call, so that calls can be
// placed between training steps; the first of a shape is not timed.
class MatmulRate {
 public:
  MatmulRate(const GptConfig& config, int64_t tokens);
  ~MatmulRate();
  double StepSeconds() const;

 private:
  struct Product;
  std::vector<Product> products_;
};

// Bytes read and written a second by a copy far larger than the caches.
double CopyBytesPerSecond();

}  // namespace forerun
