// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/attention_block.h"

#include <algorithm>
#include <limits>

#include "core/ops/cpu/math.h"
#include "core/ops/cpu/uniforms.h"

// Highway compiles this file once for each instruction set; results are the same for all.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/ops/cpu/attention_block.cc"
#include "hwy/foreach_target.h"  // keep before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace forerun::cpu::HWY_NAMESPACE {
namespace {

constexpr int kLanes = 16;  // partial results of a row: lane j % kLanes takes column j

float LargestOf(const float* row, float at_least) {
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, at_least);
  for (int64_t j = 0; j < kKeyBlock; j += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = row[j + lane] > lanes[lane] ? row[j + lane] : lanes[lane];
    }
  }
  return *std::max_element(lanes, lanes + kLanes);
}

float SumOf(const float* row) {
  float lanes[kLanes] = {};
  for (int64_t j = 0; j < kKeyBlock; j += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += row[j + lane];
  }
  float sum = 0.0f;
  for (float lane : lanes) sum += lane;
  return sum;
}

void OnlineSoftmaxLoop(int64_t rows, float* scores, float* largest, float* sum, float* correction) {
  for (int64_t i = 0; i < rows; ++i) {
    float* row = scores + i * kKeyBlock;
    const float m = LargestOf(row, largest[i]);
    correction[i] = Exp(largest[i] - m);
    largest[i] = m;
    for (int64_t j = 0; j < kKeyBlock; ++j) row[j] = Exp(row[j] - m);
    sum[i] = sum[i] * correction[i] + SumOf(row);
  }
}

void ProbabilitiesLoop(int64_t rows, const float* logsumexp, float* scores) {
  for (int64_t i = 0; i < rows; ++i) {
    float* row = scores + i * kKeyBlock;
    const float below = logsumexp[i];
    for (int64_t j = 0; j < kKeyBlock; ++j) row[j] = Exp(row[j] - below);
  }
}

void ScoreGradientsLoop(int64_t rows, const float* p, const float* weighted, float* dp) {
  for (int64_t i = 0; i < rows; ++i) {
    const float* p_row = p + i * kKeyBlock;
    float* dp_row = dp + i * kKeyBlock;
    const float w = weighted[i];
    for (int64_t j = 0; j < kKeyBlock; ++j) dp_row[j] = p_row[j] * (dp_row[j] - w);
  }
}

}  // namespace
}  // namespace forerun::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace forerun::cpu {

HWY_EXPORT(OnlineSoftmaxLoop);
HWY_EXPORT(ProbabilitiesLoop);
HWY_EXPORT(ScoreGradientsLoop);

void OnlineSoftmax(int64_t rows, float* scores, float* largest, float* sum, float* correction) {
  HWY_DYNAMIC_DISPATCH(OnlineSoftmaxLoop)(rows, scores, largest, sum, correction);
}

void Probabilities(int64_t rows, const float* logsumexp, float* scores) {
  HWY_DYNAMIC_DISPATCH(ProbabilitiesLoop)(rows, logsumexp, scores);
}

void ScoreGradients(int64_t rows, const float* p, const float* weighted, float* dp) {
  HWY_DYNAMIC_DISPATCH(ScoreGradientsLoop)(rows, p, weighted, dp);
}

void MaskScores(const ScoreBlock& block, float* scores) {
  for (int64_t i = 0; i < block.rows; ++i) {
    const int64_t seen = std::clamp<int64_t>(block.row + i + 1 - block.column, 0, kKeyBlock);
    std::fill(scores + i * kKeyBlock + seen, scores + (i + 1) * kKeyBlock,
              -std::numeric_limits<float>::infinity());
  }
}

HeadDropout::HeadDropout(const AttentionOptions& options, int64_t s, int64_t sample, int64_t head)
    : key(options.key),
      p(options.dropout),
      first(static_cast<uint64_t>(
          ((options.first_sample + sample) * options.total_heads + options.first_head + head) * s *
          s)),
      s(s) {}

void HeadDropout::Draw(const ScoreBlock& block, float* factors) const {
  const float kept = static_cast<float>(1.0 / (1.0 - static_cast<double>(p)));
  for (int64_t i = 0; i < block.rows; ++i) {
    float* row = factors + i * kKeyBlock;
    // Past the last key a row draws what belongs to the next one; those probabilities are zero.
    Uniforms(key, first + static_cast<uint64_t>((block.row + i) * s + block.column), kKeyBlock,
             row);
    for (int64_t j = 0; j < kKeyBlock; ++j) row[j] = row[j] < p ? 0.0f : kept;
  }
}

void MultiplyBlock(int64_t rows, const float* a, const float* factors, float* out) {
  for (int64_t i = 0; i < rows * kKeyBlock; ++i) out[i] = a[i] * factors[i];
}

}  // namespace forerun::cpu
#endif  // HWY_ONCE
