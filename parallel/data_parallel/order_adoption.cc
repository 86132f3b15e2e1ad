// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/order_adoption.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/random/random.h"
#include "core/tensor/host_tensor.h"

namespace forerun {
namespace {

// Never negative, so that its negation exists.
int64_t HashOf(absl::Span<const int> order) {
  RandomKey key = RandomKey::Root(0);
  for (int bucket : order) key = key.Fold(static_cast<uint64_t>(bucket));
  return static_cast<int64_t>(key.value() >> 1);
}

}  // namespace

std::vector<int> BucketOrderOf(absl::Span<const Parameter* const> reads, const BucketPlan& plan,
                               absl::Span<const int> present) {
  std::vector<int> order;
  std::vector<bool> placed(plan.buckets().size(), false);
  const auto place = [&](int bucket) {
    if (!placed[bucket]) order.push_back(bucket);
    placed[bucket] = true;
  };
  for (const Parameter* parameter : reads) {
    if (!plan.Contains(*parameter)) continue;  // frozen
    for (int bucket : plan.BucketsOf(plan.IndexOf(*parameter))) place(bucket);
  }
  for (int bucket : present) place(bucket);
  return order;
}

absl::optional<std::vector<int>> OrderAdoption::OnStep(const OpContext& context,
                                                       std::vector<int> seen,
                                                       absl::Span<const int> present) {
  if (absl::MakeConstSpan(seen) == present) {
    seen_running_ = 0;
  } else {
    seen_running_ = seen == candidate_ ? seen_running_ + 1 : 1;
  }
  candidate_ = std::move(seen);
  // The greatest hash is the least one where all are equal.
  const int64_t hash = HashOf(candidate_);
  const Tensor words = HostTensor({3}, DType::kI64);
  auto* data = words.mutable_data<int64_t>();
  data[0] = hash;
  data[1] = -hash;
  data[2] = -seen_running_;
  group_.AllReduce(words, comm::ReduceOp::kMax).Wait(*context.stream);
  if (data[0] != -data[1] || -data[2] < steps_) return absl::nullopt;
  seen_running_ = 0;
  return candidate_;
}

}  // namespace forerun
