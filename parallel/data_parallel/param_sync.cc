// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/param_sync.h"

#include <utility>

#include "core/base/check.h"

namespace forerun {

namespace {

void CheckPermutation(absl::Span<const int> order, size_t buckets) {
  FR_CHECK_EQ(order.size(), buckets) << "buckets in the gather order";
  std::vector<bool> seen(buckets, false);
  for (int bucket : order) {
    FR_CHECK(bucket >= 0 && bucket < static_cast<int>(buckets) && !seen[bucket])
        << "gather order is no permutation: bucket " << bucket;
    seen[bucket] = true;
  }
}

}  // namespace

ParamSync::ParamSync(GatherPlan plan) : plan_(std::move(plan)), states_(plan_.bytes.size()) {
  CheckPermutation(plan_.order, plan_.bytes.size());
}

void ParamSync::SetOrder(std::vector<int> order) {
  CheckPermutation(order, plan_.bytes.size());
  for (size_t b = 0; b < states_.size(); ++b) {
    FR_CHECK(Current(static_cast<int>(b))) << "bucket " << b << " is under way: no step boundary";
  }
  FR_CHECK_EQ(next_, 0u) << "gathers of this round that were issued";
  plan_.order = std::move(order);
}

void ParamSync::OnAccepted(int bucket) {
  State& state = states_[bucket];
  FR_CHECK(state.phase == Phase::kCurrent)
      << "bucket " << bucket << " is updated again before its gather of version " << state.version
      << " ended";
  state.phase = Phase::kAccepted;
  ++state.version;
}

std::vector<int> ParamSync::OnPublished(int bucket) {
  State& state = states_[bucket];
  FR_CHECK(state.phase == Phase::kAccepted) << "bucket " << bucket << " was not accepted";
  state.phase = Phase::kPublished;
  return AdvanceWithinWindow();
}

std::vector<int> ParamSync::OnGathered(int bucket) {
  State& state = states_[bucket];
  FR_CHECK(state.phase == Phase::kInFlight) << "bucket " << bucket << " was not in flight";
  state.phase = Phase::kCurrent;
  bytes_in_flight_ -= plan_.bytes[bucket];
  return AdvanceWithinWindow();
}

std::vector<int> ParamSync::OnWanted(int bucket) {
  std::vector<int> started;
  while (states_[bucket].phase == Phase::kPublished) Issue(started);
  FR_CHECK(states_[bucket].phase != Phase::kAccepted)
      << "bucket " << bucket << " is read while the optimizer updates it";
  return started;
}

std::vector<int> ParamSync::OnReadsEnded() {
  std::vector<int> started;
  if (plan_.window_bytes > 0) return started;
  while (states_[plan_.order[next_]].phase == Phase::kPublished) Issue(started);
  return started;
}

std::vector<int> ParamSync::AdvanceWithinWindow() {
  std::vector<int> started;
  if (plan_.window_bytes == 0) return started;
  while (states_[plan_.order[next_]].phase == Phase::kPublished) {
    const int64_t bytes = plan_.bytes[plan_.order[next_]];
    if (bytes_in_flight_ > 0 && bytes_in_flight_ + bytes > plan_.window_bytes) break;
    Issue(started);
  }
  return started;
}

void ParamSync::Issue(std::vector<int>& started) {
  const int bucket = plan_.order[next_];
  State& state = states_[bucket];
  FR_CHECK(state.phase == Phase::kPublished)
      << "bucket " << bucket << " is next in the gather order and was not published";
  state.phase = Phase::kInFlight;
  bytes_in_flight_ += plan_.bytes[bucket];
  next_ = (next_ + 1) % plan_.order.size();
  started.push_back(bucket);
}

}  // namespace forerun
