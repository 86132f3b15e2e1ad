// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/transfer_log.h"

#include <utility>

namespace forerun {
namespace {

constexpr size_t kMostEvents = size_t{1} << 14;

}  // namespace

TransferLog::TransferLog(std::vector<int64_t> bytes_by_bucket, SecondsClock clock)
    : clock_(std::move(clock)),
      records_(bytes_by_bucket.size()),
      latest_id_(bytes_by_bucket.size(), -1) {
  for (size_t b = 0; b < records_.size(); ++b) records_[b].bytes = bytes_by_bucket[b];
}

int64_t TransferLog::Issued(int bucket, int64_t step) {
  TransferEvent event;
  event.bucket = bucket;
  event.step = step;
  event.issued = clock_();
  MutexLock lock(&mutex_);
  if (events_.size() == kMostEvents) {
    events_.pop_front();
    ++first_id_;
  }
  events_.push_back(event);
  return latest_id_[bucket] = first_id_ + static_cast<int64_t>(events_.size()) - 1;
}

TransferEvent* TransferLog::Find(int64_t id) {
  const int64_t index = id - first_id_;
  return index < 0 || index >= static_cast<int64_t>(events_.size()) ? nullptr : &events_[index];
}

void TransferLog::Started(int64_t id) {
  const double now = clock_();
  MutexLock lock(&mutex_);
  if (TransferEvent* event = Find(id)) event->started = now;
}

void TransferLog::Ended(int64_t id) {
  const double now = clock_();
  MutexLock lock(&mutex_);
  TransferEvent* event = Find(id);
  if (event == nullptr || event->ended != TransferEvent::kNever) return;
  event->ended = now;
  TransferRecord& record = records_[event->bucket];
  ++record.transfers;
  record.in_flight += now - event->started;
}

void TransferLog::Wanted(int64_t id, double when) {
  MutexLock lock(&mutex_);
  TransferEvent* event = Find(id);
  if (event != nullptr && event->wanted == TransferEvent::kNever) event->wanted = when;
}

void TransferLog::Waited(int64_t id, double seconds, bool missed, absl::string_view reader) {
  MutexLock lock(&mutex_);
  TransferEvent* event = Find(id);
  if (event == nullptr) return;
  event->waited += seconds;
  waited_ += seconds;
  TransferRecord& record = records_[event->bucket];
  ++record.waits;
  record.misses += missed ? 1 : 0;
  record.waited += seconds;
  if (record.first_reader.empty()) record.first_reader = std::string(reader);
}

std::vector<TransferRecord> TransferLog::records() const {
  MutexLock lock(&mutex_);
  return records_;
}

void TransferLog::ResetRecords() {
  MutexLock lock(&mutex_);
  for (TransferRecord& record : records_) {
    const int64_t bytes = record.bytes;
    record = TransferRecord{};
    record.bytes = bytes;
  }
}

double TransferLog::waited() const {
  MutexLock lock(&mutex_);
  return waited_;
}

bool TransferLog::Complete(const TransferEvent& event, int64_t id) const {
  return event.ended != TransferEvent::kNever &&
         (event.wanted != TransferEvent::kNever || latest_id_[event.bucket] != id);
}

std::vector<TransferEvent> TransferLog::TakeEvents() {
  MutexLock lock(&mutex_);
  std::vector<TransferEvent> taken;
  while (!events_.empty() && Complete(events_.front(), first_id_)) {
    taken.push_back(events_.front());
    events_.pop_front();
    ++first_id_;
  }
  return taken;
}

std::vector<TransferEvent> TransferLog::TakeAllEvents() {
  MutexLock lock(&mutex_);
  std::vector<TransferEvent> taken(events_.begin(), events_.end());
  first_id_ += static_cast<int64_t>(events_.size());
  events_.clear();
  return taken;
}

std::vector<int> BucketsOf(const std::vector<TransferEvent>& events) {
  std::vector<int> buckets;
  for (const TransferEvent& event : events) buckets.push_back(event.bucket);
  return buckets;
}

}  // namespace forerun
