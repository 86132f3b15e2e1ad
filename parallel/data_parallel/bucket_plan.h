// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "core/autograd/parameter.h"
#include "core/tensor/dtype.h"

namespace forerun {

// How parameters are cut into the buckets that travel as one message: a pure function of their
// first-use order, geometry and the options. Where to cut is chosen elsewhere (bucket_cuts).
//
// Invariants
//  1. Every trainable parameter lies in buckets of its dtype, all of it, once.
//  2. Buckets are in order of the first use of their first parameter; within one dtype parameters
//     lie in first-use order, one bucket after the other, so a parameter is contiguous in memory.
//  3. A parameter starts at a multiple of `alignment` in its bucket, and overlaps no other.
//  4. A bucket's length is a multiple of shards * alignment. Shard r of a bucket of length L over
//     R shards is [r L / R, (r + 1) L / R).
//  5. A parameter above `max_bucket_bytes` lies alone in consecutive buckets, cut at multiples of
//     shards * alignment, without padding between, of which there are kMostPieces at most, longer
//     ones if need be; any other lies in one bucket. A `bucket_numel` that was asked for never cuts
//     a parameter.
//  6. A parameter that pipeline stages share is alone in its bucket or buckets, and these are of
//     max_shared_bytes, which is no stage's own choice: so its shards are the same on every stage
//     that holds it.
struct BucketPlanOptions {
  int shards = 1;  // data-parallel ranks that share a bucket; 1: everybody holds all of it
  // A bucket is closed when it holds at least so many elements. Excludes `cuts`.
  absl::optional<int64_t> bucket_numel;
  // Places in first-use order, ascending: before the parameter there, the open buckets of every
  // dtype are closed. So what lies between two cuts gives one bucket a dtype.
  std::vector<int> cuts;
  int64_t max_bucket_bytes = int64_t{64} << 20;
  int64_t max_shared_bytes = int64_t{64} << 20;
  static constexpr int64_t kMostPieces = 1024;
  int64_t alignment = 64;  // elements; the block that gradient norms are summed in

  // The arithmetic of invariants 3 to 6. In a bucket that is filled up to `numel` the next
  // parameter begins at NextBegin(numel), and its length once closed is ClosedNumel(numel).
  int64_t NextBegin(int64_t numel) const;
  int64_t ClosedNumel(int64_t numel) const;
  bool LiesAlone(const Parameter& parameter) const;
  // The longest piece of a parameter that lies alone.
  int64_t PieceNumel(const Parameter& parameter) const;
};

// A run of a parameter's elements, row-major in its local shape, inside a bucket.
struct BucketPiece {
  const Parameter* parameter = nullptr;
  int64_t parameter_begin = 0;
  int64_t bucket_begin = 0;
  int64_t numel = 0;
};

struct Bucket {
  DType dtype = DType::kF32;
  int64_t numel = 0;
  std::vector<BucketPiece> pieces;  // by bucket_begin

  int64_t bytes() const { return numel * SizeOf(dtype); }
};

class BucketPlan {
 public:
  // `first_use_order`: trainable parameters, each once.
  BucketPlan(absl::Span<const Parameter* const> first_use_order, const BucketPlanOptions& options);

  int shards() const { return shards_; }
  // In forward order, which is also the order of gathers; reductions go in reverse.
  absl::Span<const Bucket> buckets() const { return buckets_; }
  absl::Span<const Parameter* const> parameters() const { return parameters_; }

  // Dense index of a parameter in parameters(); fails a check for one that is not in the plan.
  int IndexOf(const Parameter& parameter) const;
  bool Contains(const Parameter& parameter) const { return index_.contains(&parameter); }
  // The buckets that hold a parameter: consecutive among those of its dtype, ascending.
  absl::Span<const int> BucketsOf(int parameter_index) const {
    return buckets_of_[parameter_index];
  }

  // Everything that ranks must agree on, one line an entry: equal plans give equal text.
  std::string ToString() const;

 private:
  int shards_;
  std::vector<const Parameter*> parameters_;
  std::vector<Bucket> buckets_;
  absl::flat_hash_map<const Parameter*, int> index_;
  std::vector<std::vector<int>> buckets_of_;
};

}  // namespace forerun
