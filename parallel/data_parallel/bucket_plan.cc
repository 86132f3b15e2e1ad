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
  explicit Cutter(const BucketPlanOptions& options) : options_(options) {}

  void Add(const Parameter& parameter, size_t first_use) {
    if (options_.LiesAlone(parameter)) {
      Close(parameter.dtype());
      AddAlone(parameter, first_use);
    } else {
      Append(parameter, first_use);
    }
  }

  void CloseAll() {
    while (!open_.empty()) Close(open_.begin()->first);
  }

  std::vector<PlannedBucket> Finish() {
    CloseAll();
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
    const int64_t begin = options_.NextBegin(open.bucket.numel);
    open.bucket.pieces.push_back({&parameter, 0, begin, parameter.numel()});
    open.bucket.numel = begin + parameter.numel();
    if (options_.bucket_numel.has_value() && open.bucket.numel >= *options_.bucket_numel) {
      Close(parameter.dtype());
    }
  }

  void AddAlone(const Parameter& parameter, size_t first_use) {
    const int64_t most = options_.PieceNumel(parameter);
    int64_t begin = 0;
    do {
      const int64_t numel = std::min(parameter.numel() - begin, most);
      PlannedBucket planned;
      planned.first_use = first_use;
      planned.bucket.dtype = parameter.dtype();
      planned.bucket.pieces.push_back({&parameter, begin, 0, numel});
      planned.bucket.numel = options_.ClosedNumel(numel);
      done_.push_back(std::move(planned));
      begin += numel;
    } while (begin < parameter.numel());
  }

  void Close(DType dtype) {
    const auto slot = open_.find(dtype);
    if (slot == open_.end()) return;
    slot->second.bucket.numel = options_.ClosedNumel(slot->second.bucket.numel);
    done_.push_back(std::move(slot->second));
    open_.erase(slot);
  }

  const BucketPlanOptions& options_;
  std::map<DType, PlannedBucket> open_;
  std::vector<PlannedBucket> done_;
};

}  // namespace

int64_t BucketPlanOptions::NextBegin(int64_t numel) const { return RoundUp(numel, alignment); }

int64_t BucketPlanOptions::ClosedNumel(int64_t numel) const {
  return RoundUp(numel, shards * alignment);
}

bool BucketPlanOptions::LiesAlone(const Parameter& parameter) const {
  return parameter.sharing() != Sharing::kNone || parameter.numel() > PieceNumel(parameter);
}

int64_t BucketPlanOptions::PieceNumel(const Parameter& parameter) const {
  if (bucket_numel.has_value()) return std::numeric_limits<int64_t>::max();
  const int64_t quantum = shards * alignment;
  const int64_t most = parameter.sharing() == Sharing::kNone ? max_bucket_bytes : max_shared_bytes;
  const int64_t numel = most / SizeOf(parameter.dtype()) / quantum * quantum;
  return std::max({quantum, numel, RoundUp((parameter.numel() - 1) / kMostPieces + 1, quantum)});
}

BucketPlan::BucketPlan(absl::Span<const Parameter* const> first_use_order,
                       const BucketPlanOptions& options)
    : shards_(options.shards), parameters_(first_use_order.begin(), first_use_order.end()) {
  FR_CHECK(!options.bucket_numel.has_value() || options.cuts.empty())
      << "a size at which buckets are closed and places where they are cut";
  Cutter cutter(options);
  auto cut = options.cuts.begin();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    FR_CHECK(parameters_[i]->trainable()) << parameters_[i]->name() << " is frozen";
    FR_CHECK(index_.emplace(parameters_[i], static_cast<int>(i)).second)
        << parameters_[i]->name() << " is planned twice";
    if (cut != options.cuts.end() && *cut == static_cast<int>(i)) {
      cutter.CloseAll();
      ++cut;
    }
    cutter.Add(*parameters_[i], i);
  }
  FR_CHECK(cut == options.cuts.end()) << "cut at " << *cut << " is out of order or of the model";
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
