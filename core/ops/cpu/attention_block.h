// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/ops/attention.h"

// Steps of blockwise attention on one block of the score matrix of one head, in floats: rows are
// queries, kKeyBlock columns are keys. Causal: a query sees keys up to its own position.
namespace forerun::cpu {

constexpr int64_t kQueryBlock = 64;
constexpr int64_t kKeyBlock = 64;

// Rows [row, row + rows) and columns [column, column + kKeyBlock) of a head's [s, s] matrix.
struct ScoreBlock {
  int64_t row = 0;
  int64_t rows = 0;
  int64_t column = 0;
};

// Scores of keys that a query does not see become -infinity.
void MaskScores(const ScoreBlock& block, float* scores);

// One step of the online softmax (Milakov, Gimelshein 2018). For each row: scores become
// p = exp(score - m) with m the largest so far; `largest` becomes m; `sum` and, by the caller,
// `correction` times what was accumulated before, are brought to the same m.
// Start with largest = -infinity, sum = 0. The first block of a row must show it a key.
void OnlineSoftmax(int64_t rows, float* scores, float* largest, float* sum, float* correction);

// p = exp(score - logsumexp of its row)
void Probabilities(int64_t rows, const float* logsumexp, float* scores);

// ds = p * (dp - weighted), row by row; `dp` becomes ds.
void ScoreGradients(int64_t rows, const float* p, const float* weighted, float* dp);

// The dropout of one head's probabilities: see AttentionOptions for who draws what.
struct HeadDropout {
  RandomKey key;
  float p;
  uint64_t first;  // index of element (0, 0) of the head
  int64_t s;

  HeadDropout(const AttentionOptions& options, int64_t s, int64_t sample, int64_t head);
  bool active() const { return p > 0.0f; }
  // factors[i, j] is 0 where the element is dropped, otherwise 1 / (1 - p).
  void Draw(const ScoreBlock& block, float* factors) const;
};

// out[i, j] = a[i, j] * factors[i, j]; out may be a.
void MultiplyBlock(int64_t rows, const float* a, const float* factors, float* out);

}  // namespace forerun::cpu
