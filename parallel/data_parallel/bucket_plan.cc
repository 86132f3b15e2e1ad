// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/bucket_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace forerun {
namespace {

int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// A bucket, and the first-use rank of its first parameter.
struct PlannedBucket {
  Bucket bucket;
  size_t first_use = 0;
};

// Fills buckets of every dtype side by side.
class Cutter {
 public:
  Cutter(const BucketPlanOptions& options, int64_t default_numel)
      : options_(options), quantum_(options.shards * options.alignment), default_(default_numel) {}

  void Add(const Parameter& parameter, size_t first_use) {
    const int64_t limit = options_.bucket_numel.has_value()
                              ? std::numeric_limits<int64_t>::max()
                              : options_.max_bucket_bytes / SizeOf(parameter.dtype());
    const bool alone = parameter.sharing() != Sharing::kNone || parameter.numel() > limit;
    if (alone) {
      Close(parameter.dtype());
      AddAlone(parameter, first_use, limit);
    } else {
      Append(parameter, first_use);
    }
  }

  std::vector<PlannedBucket> Finish() {
    while (!open_.empty()) Close(open_.begin()->first);
    std::stable_sort(done_.begin(), done_.end(),
                     [](const auto& a, const auto& b) { return a.first_use < b.first_use; });
    return std::move(done_);
  }

 private:
  void Append(const Parameter& parameter, size_t first_use) {
    auto [slot, opened] = open_.try_emplace(parameter.dtype());
    PlannedBucket& open = slot->second;
    if (opened) {
      open.bucket.dtype = parameter.dtype();
      open.first_use = first_use;
    }
    const int64_t begin = RoundUp(open.bucket.numel, options_.alignment);
    open.bucket.pieces.push_back({&parameter, 0, begin, parameter.numel()});
    open.bucket.numel = begin + parameter.numel();
    if (open.bucket.numel >= Target()) Close(parameter.dtype());
  }

  void AddAlone(const Parameter& parameter, size_t first_use, int64_t limit) {
    const int64_t cut = limit == std::numeric_limits<int64_t>::max()
                            ? limit
                            : std::max(quantum_, limit / quantum_ * quantum_);
    int64_t begin = 0;
    do {
      const int64_t numel = std::min(parameter.numel() - begin, cut);
      PlannedBucket planned;
      planned.first_use = first_use;
      planned.bucket.dtype = parameter.dtype();
      planned.bucket.pieces.push_back({&parameter, begin, 0, numel});
      planned.bucket.numel = RoundUp(numel, quantum_);
      done_.push_back(std::move(planned));
      begin += numel;
    } while (begin < parameter.numel());
  }

  void Close(DType dtype) {
    const auto slot = open_.find(dtype);
    if (slot == open_.end()) return;
    slot->second.bucket.numel = RoundUp(slot->second.bucket.numel, quantum_);
    done_.push_back(std::move(slot->second));
    open_.erase(slot);
  }

  int64_t Target() const {
    if (options_.bucket_numel.has_value()) return *options_.bucket_numel;
    return done_.empty() ? default_ / 4 : default_;
  }

  const BucketPlanOptions& options_;
  const int64_t quantum_;
  const int64_t default_;
  std::map<DType, PlannedBucket> open_;
  std::vector<PlannedBucket> done_;
};

int64_t DefaultBucketNumel(absl::Span<const Parameter* const> parameters,
                           const BucketPlanOptions& options) {
  constexpr int64_t kLeast = int64_t{16} << 10;
  int64_t total = 0;
  for (const Parameter* parameter : parameters) total += parameter->numel();
  return std::min(std::max(kLeast, total / 8), options.max_bucket_bytes / SizeOf(DType::kF32));
}

}  // namespace

BucketPlan::BucketPlan(absl::Span<const Parameter* const> first_use_order,
                       const BucketPlanOptions& options)
    : shards_(options.shards), parameters_(first_use_order.begin(), first_use_order.end()) {
  Cutter cutter(options, DefaultBucketNumel(first_use_order, options));
  for (size_t i = 0; i < parameters_.size(); ++i) {
    FR_CHECK(parameters_[i]->trainable()) << parameters_[i]->name() << " is frozen";
    FR_CHECK(index_.emplace(parameters_[i], static_cast<int>(i)).second)
        << parameters_[i]->name() << " is planned twice";
    cutter.Add(*parameters_[i], i);
  }
  buckets_of_.resize(parameters_.size());
  for (PlannedBucket& planned : cutter.Finish()) {
    for (const BucketPiece& piece : planned.bucket.pieces) {
      buckets_of_[IndexOf(*piece.parameter)].push_back(static_cast<int>(buckets_.size()));
    }
    buckets_.push_back(std::move(planned.bucket));
  }
}

int BucketPlan::IndexOf(const Parameter& parameter) const {
  const auto found = index_.find(&parameter);
  FR_CHECK(found != index_.end()) << parameter.name() << " is not in the bucket plan";
  return found->second;
}

std::string BucketPlan::ToString() const {
  std::string text;
  for (size_t b = 0; b < buckets_.size(); ++b) {
    const Bucket& bucket = buckets_[b];
    absl::StrAppend(&text, "bucket ", b, ": ", NameOf(bucket.dtype), " ", bucket.numel,
                    " elements over ", shards_, " shards\n");
    for (const BucketPiece& piece : bucket.pieces) {
      absl::StrAppend(&text, "  [", piece.bucket_begin, ", ", piece.bucket_begin + piece.numel,
                      ") ", piece.parameter->name(), " from ", piece.parameter_begin, "\n");
    }
  }
  return text;
}

}  // namespace forerun
