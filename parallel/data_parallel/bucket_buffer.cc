// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/bucket_buffer.h"

#include <algorithm>

#include "core/base/check.h"

namespace forerun {
namespace {

Tensor Cleared(const OpContext& context, const Shape& shape, DType dtype) {
  Tensor tensor = context.Empty(shape, dtype);
  tensor.Clear();
  return tensor;
}

}  // namespace

BucketBuffer::BucketBuffer(const BucketPlan& plan, absl::Span<const Parameter* const> frozen,
                           const OpContext& context)
    : plan_(plan) {
  absl::flat_hash_map<DType, int64_t> numel;
  offset_of_parameter_.resize(plan.parameters().size());
  for (const Bucket& bucket : plan.buckets()) {
    const int64_t begin = numel[bucket.dtype];
    offset_of_bucket_.push_back(begin);
    for (const BucketPiece& piece : bucket.pieces) {
      if (piece.parameter_begin > 0) continue;
      offset_of_parameter_[plan.IndexOf(*piece.parameter)] = begin + piece.bucket_begin;
    }
    numel[bucket.dtype] += bucket.numel;
  }
  for (const auto& [dtype, total] : numel) {
    arenas_[dtype] = {Cleared(context, {total}, dtype), Cleared(context, {total}, DType::kF32)};
  }
  for (const Parameter* parameter : frozen) {
    frozen_[parameter] = Cleared(context, parameter->shape(), parameter->dtype());
  }
}

Tensor BucketBuffer::Initial(const Parameter& parameter) {
  FR_CHECK(!sealed_) << parameter.name() << " is initialised after the first read";
  return Param(parameter);
}

Tensor BucketBuffer::ParamBucket(int bucket) const {
  const Bucket& planned = plan_.buckets()[bucket];
  const int64_t begin = offset_of_bucket_[bucket];
  return arenas_.at(planned.dtype).params.Slice(0, begin, begin + planned.numel);
}

Tensor BucketBuffer::GradBucket(int bucket) const {
  const Bucket& planned = plan_.buckets()[bucket];
  const int64_t begin = offset_of_bucket_[bucket];
  return arenas_.at(planned.dtype).grads.Slice(0, begin, begin + planned.numel);
}

Tensor BucketBuffer::Param(const Parameter& parameter) const {
  const auto frozen = frozen_.find(&parameter);
  if (frozen != frozen_.end()) return frozen->second;
  const int64_t begin = offset_of_parameter_[plan_.IndexOf(parameter)];
  return arenas_.at(parameter.dtype())
      .params.Slice(0, begin, begin + parameter.numel())
      .View(parameter.shape());
}

Tensor BucketBuffer::Grad(const Parameter& parameter) const {
  const int64_t begin = offset_of_parameter_[plan_.IndexOf(parameter)];
  return arenas_.at(parameter.dtype())
      .grads.Slice(0, begin, begin + parameter.numel())
      .View(parameter.shape());
}

int64_t ShardWriter::shard_numel(int bucket) const {
  return plan().buckets()[bucket].numel / plan().shards();
}

Tensor ShardWriter::Params(int bucket) const {
  const int64_t numel = shard_numel(bucket);
  return buffer_.ParamBucket(bucket).Slice(0, shard_ * numel, (shard_ + 1) * numel);
}

Tensor ShardWriter::Grads(int bucket) const {
  const int64_t numel = shard_numel(bucket);
  return buffer_.GradBucket(bucket).Slice(0, shard_ * numel, (shard_ + 1) * numel);
}

std::vector<BucketPiece> ShardWriter::Pieces(int bucket) const {
  const int64_t shard_begin = shard_ * shard_numel(bucket);
  const int64_t shard_end = shard_begin + shard_numel(bucket);
  std::vector<BucketPiece> pieces;
  for (const BucketPiece& piece : plan().buckets()[bucket].pieces) {
    const int64_t begin = std::max(piece.bucket_begin, shard_begin);
    const int64_t end = std::min(piece.bucket_begin + piece.numel, shard_end);
    if (begin >= end) continue;
    pieces.push_back({piece.parameter, piece.parameter_begin + begin - piece.bucket_begin,
                      begin - shard_begin, end - begin});
  }
  return pieces;
}

}  // namespace forerun
