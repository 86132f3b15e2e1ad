// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/attention_backward.h"

#include <algorithm>

#include "core/ops/cpu/attention_block.h"
#include "core/ops/cpu/block_product.h"

namespace forerun::cpu {
namespace {

// Scratch of a task, in floats.
struct Scratch {
  float *keys, *keys_t, *values_t, *dkeys, *dvalues;  // all keys of a head
  float *queries, *dout, *dqueries;                   // one block of queries
  float *p, *dp, *factors, *kept;                     // one block of scores
  float* weighted;                                    // one value a query

  explicit Scratch(const AttentionSizes& sizes, float* memory) {
    ScratchCursor cursor{memory};
    for (float** keys_like : {&keys, &keys_t, &values_t, &dkeys, &dvalues}) {
      *keys_like = cursor.Take(sizes.keys());
    }
    for (float** queries_like : {&queries, &dout, &dqueries}) {
      *queries_like = cursor.Take(sizes.queries());
    }
    for (float** block : {&p, &dp, &factors, &kept}) *block = cursor.Take(kQueryBlock * kKeyBlock);
    weighted = cursor.Take(kQueryBlock);
  }
  static int64_t Floats(const AttentionSizes& sizes) {
    return 5 * sizes.keys() + 3 * sizes.queries() + 4 * kQueryBlock * kKeyBlock + kQueryBlock;
  }
};

template <typename T>
class BackwardTask {
 public:
  BackwardTask(const AttentionBackward& of, float* memory)
      : of_(of), sizes_(of.sizes), width_(of.sizes.width), scratch_(of.sizes, memory) {}

  void Run(int64_t sample, int64_t kv_head) const {
    LoadKeys(ReadHead<T>(of_.v, sample, kv_head), sizes_, scratch_.keys);
    TransposeKeys(scratch_.keys, sizes_, scratch_.values_t);
    LoadKeys(ReadHead<T>(of_.k, sample, kv_head), sizes_, scratch_.keys);
    TransposeKeys(scratch_.keys, sizes_, scratch_.keys_t);
    std::fill(scratch_.dkeys, scratch_.dkeys + sizes_.keys(), 0.0f);
    std::fill(scratch_.dvalues, scratch_.dvalues + sizes_.keys(), 0.0f);
    for (int64_t head = kv_head * sizes_.group(); head < (kv_head + 1) * sizes_.group(); ++head) {
      for (int64_t row = 0; row < sizes_.s; row += kQueryBlock) {
        QueryBlock(sample, head, row, std::min(kQueryBlock, sizes_.s - row));
      }
    }
    StoreRows(scratch_.dkeys, sizes_.s, width_, nullptr, 1.0f,
              WriteHead<T>(of_.gradients.dk, sample, kv_head), 0);
    StoreRows(scratch_.dvalues, sizes_.s, width_, nullptr, 1.0f,
              WriteHead<T>(of_.gradients.dv, sample, kv_head), 0);
  }

 private:
  void QueryBlock(int64_t sample, int64_t head, int64_t row, int64_t rows) const {
    const HeadDropout dropout(of_.options, sizes_.s, sample, head);
    LoadRows(ReadHead<T>(of_.dout, sample, head), row, rows, width_, 1.0f, scratch_.dout);
    Weigh(sample, head, row, rows);
    LoadRows(ReadHead<T>(of_.q, sample, head), row, rows, width_, of_.options.scale,
             scratch_.queries);
    std::fill(scratch_.dqueries, scratch_.dqueries + rows * width_, 0.0f);
    const float* logsumexp =
        of_.forward.logsumexp.data<float>() + (sample * sizes_.heads + head) * sizes_.s + row;
    for (int64_t column = 0; column < row + rows; column += kKeyBlock) {
      AddKeys(ScoreBlock{row, rows, column}, dropout, logsumexp);
    }
    StoreRows(scratch_.dqueries, rows, width_, nullptr, of_.options.scale,
              WriteHead<T>(of_.gradients.dq, sample, head), row);
  }

  // weighted_i = dout_i . out_i; `queries` serves as the place of out.
  void Weigh(int64_t sample, int64_t head, int64_t row, int64_t rows) const {
    LoadRows(ReadHead<T>(of_.forward.out, sample, head), row, rows, width_, 1.0f, scratch_.queries);
    for (int64_t i = 0; i < rows; ++i) {
      const float* a = scratch_.dout + i * width_;
      const float* b = scratch_.queries + i * width_;
      float lanes[kBlockColumns] = {};
      for (int64_t c = 0; c < width_; c += kBlockColumns) {
        for (int64_t lane = 0; lane < kBlockColumns; ++lane)
          lanes[lane] += a[c + lane] * b[c + lane];
      }
      scratch_.weighted[i] = 0.0f;
      for (float lane : lanes) scratch_.weighted[i] += lane;
    }
  }

  void AddKeys(const ScoreBlock& block, const HeadDropout& dropout, const float* logsumexp) const {
    const int64_t rows = block.rows, first_key = block.column * width_;
    BlockProduct(rows, kKeyBlock, width_, {scratch_.queries, width_, 1},
                 scratch_.keys_t + first_key, kKeyBlock, false, scratch_.p, kKeyBlock);
    if (block.column + kKeyBlock > block.row) MaskScores(block, scratch_.p);
    Probabilities(rows, logsumexp, scratch_.p);
    BlockProduct(rows, kKeyBlock, width_, {scratch_.dout, width_, 1}, scratch_.values_t + first_key,
                 kKeyBlock, false, scratch_.dp, kKeyBlock);
    const float* kept = scratch_.p;  // dropout(P)
    if (dropout.active()) {
      dropout.Draw(block, scratch_.factors);
      MultiplyBlock(rows, scratch_.p, scratch_.factors, scratch_.kept);
      MultiplyBlock(rows, scratch_.dp, scratch_.factors, scratch_.dp);
      kept = scratch_.kept;
    }
    AddTransposed(rows, kept, scratch_.dout, scratch_.dvalues + first_key);
    ScoreGradients(rows, scratch_.p, scratch_.weighted, scratch_.dp);
    AddTransposed(rows, scratch_.dp, scratch_.queries, scratch_.dkeys + first_key);
    BlockProduct(rows, width_, kKeyBlock, {scratch_.dp, kKeyBlock, 1}, scratch_.keys + first_key,
                 width_, true, scratch_.dqueries, width_);
  }

  // keys_like[j] += sum over rows of block[i, j] * queries_like[i]
  void AddTransposed(int64_t rows, const float* block, const float* queries_like,
                     float* keys_like) const {
    BlockProduct(kKeyBlock, width_, rows, {block, 1, kKeyBlock}, queries_like, width_, true,
                 keys_like, width_);
  }

  const AttentionBackward& of_;
  const AttentionSizes& sizes_;
  const int64_t width_;
  const Scratch scratch_;
};

}  // namespace

int64_t AttentionBackward::ScratchFloats() const { return Scratch::Floats(sizes); }

void AttentionBackward::Run(int64_t sample, int64_t kv_head, float* memory) const {
  VisitStored(q.dtype(),
              [&](auto type) { BackwardTask<decltype(type)>(*this, memory).Run(sample, kv_head); });
}

}  // namespace forerun::cpu
