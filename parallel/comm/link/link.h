// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"
#include "parallel/comm/link/clock.h"
#include "parallel/comm/process_group.h"

namespace forerun::comm {

// Bytes that one rank of `ranks` puts on the wire in an operation, `whole_bytes` being those of its
// largest tensor. Collectives are counted as rings:
//   AllGather, ReduceScatter  (n-1)/n of the whole
//   AllReduce                 2 (n-1)/n of it: a scatter and a gather
//   Broadcast                 the whole
//   Send, Recv                the message
//   Barrier                   0
int64_t WireBytes(OpKind kind, int64_t whole_bytes, int ranks);

// One operation that a link has carried.
struct LinkRecord {
  std::string group;
  OpKind kind = OpKind::kBarrier;
  int64_t bytes = 0;       // on the wire
  Clock::Time issued{0};   // to the group
  Clock::Time started{0};  // the link was free for it
  Clock::Time ended{0};    // its Work did
};

// A rank's way out: a wire with latency (alpha) and bandwidth, which carries one operation at a
// time, in the order in which they come, whatever their groups and directions:
//   start = max(issue, end of the one before),  end = start + alpha + wire bytes / bandwidth.
//
// May be shared by several groups of a rank. Any thread may call.
class Link {
 public:
  struct Options {
    Clock::Time latency{0};
    double bytes_per_second = std::numeric_limits<double>::infinity();
  };
  struct Occupancy {
    Clock::Time start{0};
    Clock::Time end{0};
  };

  // `clock` outlives the link and what it carries.
  Link(const Options& options, Clock& clock);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  Clock& clock() { return clock_; }
  // Alpha and the bytes, to the nearest nanosecond.
  Clock::Time TimeOf(int64_t wire_bytes) const;
  // The link's next occupancy, by an operation that comes now.
  Occupancy Occupy(int64_t wire_bytes);

  void AddRecord(LinkRecord record);
  // What has ended well since the last call, in the order of ends.
  std::vector<LinkRecord> TakeRecords();

 private:
  const Options options_;
  Clock& clock_;
  Mutex mutex_;
  Clock::Time free_ ABSL_GUARDED_BY(mutex_){0};
  std::vector<LinkRecord> records_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace forerun::comm
