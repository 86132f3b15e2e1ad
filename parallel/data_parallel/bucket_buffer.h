// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "core/autograd/parameter.h"
#include "core/ops/op_context.h"
#include "core/tensor/tensor.h"
#include "parallel/data_parallel/bucket_plan.h"

namespace forerun {

// The memory of a bucket plan: parameters, and fp32 gradients beside them, bucket by bucket, the
// buckets of one dtype one after the other. Frozen parameters lie apart. All memory is cleared
// once; paddings stay zero.
//
// There is no public way to a value once training has begun. The friends are the only doors:
// ParamGate lets values out, GradReducer takes gradients in, ShardWriter updates this rank's part.
class BucketBuffer {
 public:
  // The plan, and the context's allocator and stream, outlive the buffer.
  BucketBuffer(const BucketPlan& plan, absl::Span<const Parameter* const> frozen,
               const OpContext& context);
  BucketBuffer(const BucketBuffer&) = delete;
  BucketBuffer& operator=(const BucketBuffer&) = delete;

  const BucketPlan& plan() const { return plan_; }

  // For set-up: initial values and values from a checkpoint are written here, all of the
  // parameter's local box on every rank. A failed check after the first read through the gate.
  Tensor Initial(const Parameter& parameter);

 private:
  friend class ParamGate;
  friend class GradReducer;
  friend class ShardWriter;

  Tensor ParamBucket(int bucket) const;
  Tensor GradBucket(int bucket) const;
  Tensor Param(const Parameter& parameter) const;
  Tensor Grad(const Parameter& parameter) const;
  void Seal() { sealed_ = true; }

  // The buckets of one dtype.
  struct Arena {
    Tensor params;
    Tensor grads;
  };
  const BucketPlan& plan_;
  absl::flat_hash_map<DType, Arena> arenas_;
  std::vector<int64_t> offset_of_bucket_;     // in its arena, elements
  std::vector<int64_t> offset_of_parameter_;  // the same, by index in the plan
  absl::flat_hash_map<const Parameter*, Tensor> frozen_;
  bool sealed_ = false;
};

// The only writer of a bucket buffer during training: this rank's own shard of every bucket. Used
// by the optimizer, between a bucket's acceptance and its publication.
class ShardWriter {
 public:
  ShardWriter(BucketBuffer& buffer, int shard) : buffer_(buffer), shard_(shard) {}

  int shard() const { return shard_; }
  const BucketPlan& plan() const { return buffer_.plan(); }
  int64_t shard_numel(int bucket) const;
  Tensor Params(int bucket) const;
  Tensor Grads(int bucket) const;  // reduced

  // The pieces of parameters that lie in the own shard: bucket_begin counts from the shard's
  // start, and parameter_begin is a multiple of the plan's alignment.
  std::vector<BucketPiece> Pieces(int bucket) const;

 private:
  BucketBuffer& buffer_;
  const int shard_;
};

}  // namespace forerun
