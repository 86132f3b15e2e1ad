// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/param_sync.h"

#include <utility>

#include "core/base/check.h"

namespace forerun {

ParamSync::ParamSync(GatherPlan plan)
    : plan_(std::move(plan)), place_(plan_.order.size(), -1), states_(plan_.order.size()) {
  FR_CHECK_EQ(plan_.order.size(), plan_.bytes.size()) << "buckets in the gather plan";
  for (size_t i = 0; i < plan_.order.size(); ++i) {
    const int bucket = plan_.order[i];
    FR_CHECK(bucket >= 0 && bucket < static_cast<int>(place_.size()) && place_[bucket] == -1)
        << "gather order is no permutation: bucket " << bucket;
    place_[bucket] = static_cast<int>(i);
  }
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
