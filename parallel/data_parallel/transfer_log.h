// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"

namespace forerun {

// Seconds from some fixed moment.
using SecondsClock = std::function<double()>;

// What became of one message of one bucket: a gather, or a reduction. Seconds of the log's clock.
struct TransferEvent {
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  int bucket = 0;
  int64_t step = 0;         // the version that a gather brings; the step that is reduced
  double issued = 0.0;      // its turn in the issue order came
  double started = kNever;  // it was handed to the group
  double ended = kNever;    // its result was there
  double wanted = kNever;   // a reader, or the optimizer, first asked for it
  double waited = 0.0;      // compute was blocked on it: exposed time
};

// One bucket's messages, summed since the last reset.
struct TransferRecord {
  int64_t bytes = 0;         // of one message
  int64_t transfers = 0;     // ended
  int64_t waits = 0;         // times that compute was blocked
  int64_t misses = 0;        // of these: it had not even been issued
  double waited = 0.0;       // seconds that compute was blocked: exposed time
  double in_flight = 0.0;    // seconds from start to end
  std::string first_reader;  // who waited first
};

// The record of a rank's bucket messages, always on: sums by bucket, and the latest events. Events
// that nobody takes are dropped, oldest first. Any thread may call.
class TransferLog {
 public:
  TransferLog(std::vector<int64_t> bytes_by_bucket, SecondsClock clock);

  // The message's life. Returns the name that the other calls know it by; those do nothing for one
  // that has been taken or dropped meanwhile, and only the first end and the first asking count.
  int64_t Issued(int bucket, int64_t step);
  void Started(int64_t id);
  void Ended(int64_t id);
  void Wanted(int64_t id, double when);
  // Compute was blocked on a message of this bucket.
  void Waited(int64_t id, double seconds, bool missed, absl::string_view reader);

  std::vector<TransferRecord> records() const;  // by bucket
  void ResetRecords();
  // Seconds that compute was blocked since construction, over all buckets.
  double waited() const;

  // In the order in which they were issued, those that have ended and that somebody asked for, or
  // that a later message of their bucket has followed; up to the first that has not.
  std::vector<TransferEvent> TakeEvents();
  // All of them, for the end of a run: what is still under way is recorded no further.
  std::vector<TransferEvent> TakeAllEvents();

  double Now() const { return clock_(); }

 private:
  TransferEvent* Find(int64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Complete(const TransferEvent& event, int64_t id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SecondsClock clock_;
  mutable Mutex mutex_;
  std::vector<TransferRecord> records_ ABSL_GUARDED_BY(mutex_);
  double waited_ ABSL_GUARDED_BY(mutex_) = 0.0;
  std::deque<TransferEvent> events_ ABSL_GUARDED_BY(mutex_);
  int64_t first_id_ ABSL_GUARDED_BY(mutex_) = 0;            // of events_.front()
  std::vector<int64_t> latest_id_ ABSL_GUARDED_BY(mutex_);  // by bucket
};

// The buckets of events.
std::vector<int> BucketsOf(const std::vector<TransferEvent>& events);

}  // namespace forerun
