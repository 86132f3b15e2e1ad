// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "parallel/data_parallel/bucket_plan.h"
#include "trainer/step_trace.h"

namespace forerun {

// A file in Chrome's trace format, for ui.perfetto.dev: each rank is a process with four tracks.
//   compute   passes of microbatches (F0, B0, ...) without what they waited for, and the update
//   gather    a bucket's gather from start to end; arguments: when it started, and when `wanted`
//   reduce    the same for reductions
//   pipeline  time blocked in receives
// Messages of a track are in the air together; as slices of one track may not overlap, each is
// drawn from the end of the one before. Times are microseconds of the process's steady clock. Any
// thread may call.
class TraceFile {
 public:
  static absl::StatusOr<std::unique_ptr<TraceFile>> Open(const std::string& path);
  ~TraceFile();  // ends the file

  void Add(int rank, const StepTrace& trace, const BucketPlan& plan);
  // The first failure to write, if there was one.
  absl::Status status() const;

 private:
  TraceFile(std::string path, std::ofstream file);
  // An event, without the commas between.
  void Write(const std::string& json) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NameTracks(int rank) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddCompute(int rank, const StepTrace& trace) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddTransfer(int rank, int track, const TransferEvent& event, const BucketPlan& plan)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  mutable Mutex mutex_;
  std::ofstream file_ ABSL_GUARDED_BY(mutex_);
  int error_ ABSL_GUARDED_BY(mutex_) = 0;  // of the first write that failed, as errno has it
  bool empty_ ABSL_GUARDED_BY(mutex_) = true;
  // By rank, once its tracks have names: where the last slice of each ends, in seconds.
  std::vector<std::vector<double>> drawn_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace forerun
