// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/link/link.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.h"

namespace forerun::comm {

int64_t WireBytes(OpKind kind, int64_t whole_bytes, int ranks) {
  switch (kind) {
    case OpKind::kAllGather:
    case OpKind::kReduceScatter:
      return whole_bytes * (ranks - 1) / ranks;
    case OpKind::kAllReduce:
      return 2 * whole_bytes * (ranks - 1) / ranks;
    case OpKind::kBroadcast:
    case OpKind::kSend:
    case OpKind::kRecv:
      return whole_bytes;
    case OpKind::kBarrier:
      return 0;
  }
  return 0;
}

Link::Link(const Options& options, Clock& clock) : options_(options), clock_(clock) {
  FR_CHECK_GE(options.latency.count(), 0) << "a link's latency";
  FR_CHECK_GT(options.bytes_per_second, 0.0) << "a link's bandwidth";
}

Clock::Time Link::TimeOf(int64_t wire_bytes) const {
  const double nanoseconds = 1e9 * static_cast<double>(wire_bytes) / options_.bytes_per_second;
  return options_.latency + Clock::Time(std::llround(nanoseconds));
}

Link::Occupancy Link::Occupy(int64_t wire_bytes) {
  MutexLock lock(&mutex_);
  const Clock::Time start = std::max(clock_.Now(), free_);
  free_ = start + TimeOf(wire_bytes);
  return {start, free_};
}

void Link::AddRecord(LinkRecord record) {
  MutexLock lock(&mutex_);
  records_.push_back(std::move(record));
}

std::vector<LinkRecord> Link::TakeRecords() {
  MutexLock lock(&mutex_);
  return std::exchange(records_, {});
}

}  // namespace forerun::comm
