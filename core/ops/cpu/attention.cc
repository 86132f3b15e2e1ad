// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/parallel_for.h"
#include "core/ops/cpu/attention_backward.h"
#include "core/ops/cpu/attention_block.h"
#include "core/ops/cpu/attention_operands.h"
#include "core/ops/cpu/block_product.h"

namespace forerun::cpu {
namespace {

// Scratch of a task of the forward pass, in floats.
struct ForwardScratch {
  float *keys_t, *values, *queries, *scores, *factors, *sums;
  float *largest, *sum, *correction;

  explicit ForwardScratch(const AttentionSizes& sizes, float* memory) {
    ScratchCursor cursor{memory};
    keys_t = cursor.Take(sizes.keys());
    values = cursor.Take(sizes.keys());
    queries = cursor.Take(sizes.queries());
    sums = cursor.Take(sizes.queries());
    scores = cursor.Take(kQueryBlock * kKeyBlock);
    factors = cursor.Take(kQueryBlock * kKeyBlock);
    largest = cursor.Take(kQueryBlock);
    sum = cursor.Take(kQueryBlock);
    correction = cursor.Take(kQueryBlock);
  }
  static int64_t Floats(const AttentionSizes& sizes) {
    return 2 * sizes.keys() + 2 * sizes.queries() + 2 * kQueryBlock * kKeyBlock + 3 * kQueryBlock;
  }
};

// Forward of the query heads of one (sample, kv head) after another, one thread.
template <typename T>
class ForwardTask {
 public:
  ForwardTask(const AttentionSizes& sizes, const Tensor& q, const Tensor& k, const Tensor& v,
              const AttentionOptions& options, const AttentionResult& out, float* memory)
      : sizes_(sizes), q_(q), k_(k), v_(v), options_(options), out_(out), scratch_(sizes, memory) {}

  void Run(int64_t sample, int64_t kv_head) const {
    // The values' place first serves the keys on their way to being transposed.
    LoadKeys(ReadHead<T>(k_, sample, kv_head), sizes_, scratch_.values);
    TransposeKeys(scratch_.values, sizes_, scratch_.keys_t);
    LoadKeys(ReadHead<T>(v_, sample, kv_head), sizes_, scratch_.values);
    for (int64_t head = kv_head * sizes_.group(); head < (kv_head + 1) * sizes_.group(); ++head) {
      for (int64_t row = 0; row < sizes_.s; row += kQueryBlock) {
        QueryBlock(sample, head, row, std::min(kQueryBlock, sizes_.s - row));
      }
    }
  }

 private:
  void QueryBlock(int64_t sample, int64_t head, int64_t row, int64_t rows) const {
    const HeadDropout dropout(options_, sizes_.s, sample, head);
    LoadRows(ReadHead<T>(q_, sample, head), row, rows, sizes_.width, options_.scale,
             scratch_.queries);
    std::fill(scratch_.sums, scratch_.sums + rows * sizes_.width, 0.0f);
    std::fill(scratch_.largest, scratch_.largest + rows, -std::numeric_limits<float>::infinity());
    std::fill(scratch_.sum, scratch_.sum + rows, 0.0f);
    for (int64_t column = 0; column < row + rows; column += kKeyBlock) {
      AddKeys(ScoreBlock{row, rows, column}, dropout);
    }
    Finish(sample, head, row, rows);
  }

  void AddKeys(const ScoreBlock& block, const HeadDropout& dropout) const {
    const int64_t rows = block.rows, width = sizes_.width;
    float* scores = scratch_.scores;
    BlockProduct(rows, kKeyBlock, width, {scratch_.queries, width, 1},
                 scratch_.keys_t + block.column * width, kKeyBlock, false, scores, kKeyBlock);
    if (block.column + kKeyBlock > block.row) MaskScores(block, scores);
    OnlineSoftmax(rows, scores, scratch_.largest, scratch_.sum, scratch_.correction);
    if (dropout.active()) {
      dropout.Draw(block, scratch_.factors);
      MultiplyBlock(rows, scores, scratch_.factors, scores);
    }
    for (int64_t i = 0; i < rows; ++i) {
      float* sum = scratch_.sums + i * width;
      const float correction = scratch_.correction[i];
      for (int64_t c = 0; c < width; ++c) sum[c] *= correction;
    }
    BlockProduct(rows, width, kKeyBlock, {scores, kKeyBlock, 1},
                 scratch_.values + block.column * width, width, true, scratch_.sums, width);
  }

  void Finish(int64_t sample, int64_t head, int64_t row, int64_t rows) const {
    float* logsumexp =
        out_.logsumexp.mutable_data<float>() + (sample * sizes_.heads + head) * sizes_.s + row;
    for (int64_t i = 0; i < rows; ++i) {
      logsumexp[i] = scratch_.largest[i] + std::log(scratch_.sum[i]);
      scratch_.correction[i] = 1.0f / scratch_.sum[i];
    }
    StoreRows(scratch_.sums, rows, sizes_.width, scratch_.correction, 1.0f,
              WriteHead<T>(out_.out, sample, head), row);
  }

  const AttentionSizes& sizes_;
  const Tensor &q_, &k_, &v_;
  const AttentionOptions& options_;
  const AttentionResult& out_;
  const ForwardScratch scratch_;
};

// Calls run(sample, kv_head, scratch) for each pair, over the threads; a thread has `floats` floats
// of scratch for all of its pairs. No result crosses pairs, so bits do not depend on threads.
template <typename Run>
void ForKeyHeads(const OpContext& context, const AttentionSizes& sizes, int64_t floats, Run run) {
  const int64_t pairs = sizes.b * sizes.kv_heads;
  const int64_t parts = std::min<int64_t>(pairs, LoopThreads());
  const Tensor scratch = context.Empty({parts, floats}, DType::kF32);
  float* memory = scratch.mutable_data<float>();
  ParallelFor(parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      for (int64_t pair = part; pair < pairs; pair += parts) {
        run(pair / sizes.kv_heads, pair % sizes.kv_heads, memory + part * floats);
      }
    }
  });
}

class CpuAttention final : public AttentionKernels {
 public:
  void Forward(const OpContext& context, const Tensor& q, const Tensor& k, const Tensor& v,
               const AttentionOptions& options, const AttentionResult& out) const override {
    const AttentionSizes sizes(q, k);
    VisitStored(q.dtype(), [&](auto type) {
      ForKeyHeads(
          context, sizes, ForwardScratch::Floats(sizes),
          [&](int64_t sample, int64_t kv_head, float* memory) {
            ForwardTask<decltype(type)>(sizes, q, k, v, options, out, memory).Run(sample, kv_head);
          });
    });
  }

  void Backward(const OpContext& context, const Tensor& q, const Tensor& k, const Tensor& v,
                const AttentionResult& forward, const Tensor& dout, const AttentionOptions& options,
                const AttentionGradients& gradients) const override {
    const AttentionSizes sizes(q, k);
    const AttentionBackward backward{sizes, q, k, v, forward, dout, options, gradients};
    ForKeyHeads(context, sizes, backward.ScratchFloats(),
                [&](int64_t sample, int64_t kv_head, float* memory) {
                  backward.Run(sample, kv_head, memory);
                });
  }
};

}  // namespace

const AttentionKernels& Attention() {
  static const CpuAttention kernels;
  return kernels;
}

}  // namespace forerun::cpu
