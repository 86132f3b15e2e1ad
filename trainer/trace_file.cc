// SPDX-License-Identifier: Apache-2.0
#include "trainer/trace_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "parallel/pipeline/schedule.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTracks[] = {"compute", "gather", "reduce", "pipeline"};
constexpr int kCompute = 0, kGather = 1, kReduce = 2, kPipeline = 3;

Json Slice(int rank, int track, const std::string& name, double begin, double end) {
  return {{"name", name}, {"ph", "X"},         {"pid", rank},
          {"tid", track}, {"ts", begin * 1e6}, {"dur", (end - begin) * 1e6}};
}

std::string Name(const char* what, int rank, int track, const std::string& name) {
  const Json args = {{"name", name}};
  return Json{{"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", track}, {"args", args}}.dump();
}

}  // namespace

TraceFile::TraceFile(std::string path, std::ofstream file)
    : path_(std::move(path)), file_(std::move(file)) {}

absl::StatusOr<std::unique_ptr<TraceFile>> TraceFile::Open(const std::string& path) {
  std::ofstream file(path, std::ios::trunc);
  if (!file) {
    return absl::PermissionDeniedError(
        absl::StrCat("cannot write trace file ", path, ": ", std::strerror(errno)));
  }
  file << "[\n";
  return std::unique_ptr<TraceFile>(new TraceFile(path, std::move(file)));
}

TraceFile::~TraceFile() {
  MutexLock lock(&mutex_);
  file_ << "\n]\n";
}

absl::Status TraceFile::status() const {
  MutexLock lock(&mutex_);
  if (error_ == 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("cannot write trace file ", path_, ": ", std::strerror(error_)));
}

void TraceFile::Write(const std::string& json) {
  if (!std::exchange(empty_, false)) file_ << ",\n";
  file_ << json;
}

void TraceFile::NameTracks(int rank) {
  if (drawn_.size() <= static_cast<size_t>(rank)) drawn_.resize(rank + 1);
  if (!drawn_[rank].empty()) return;
  drawn_[rank].resize(std::size(kTracks), 0.0);
  Write(Name("process_name", rank, 0, absl::StrCat("rank ", rank)));
  for (size_t i = 0; i < std::size(kTracks); ++i) {
    const int track = static_cast<int>(i);
    Write(Name("thread_name", rank, track, kTracks[track]));
  }
}

void TraceFile::AddCompute(int rank, const StepTrace& trace) {
  for (const pipeline::ActionRecord& action : trace.actions) {
    const double begin = action.start + action.waited;
    if (action.waited > 0.0) {
      Write(Slice(rank, kPipeline, "receive", action.start, begin).dump());
    }
    Write(Slice(rank, kCompute, ToString(action.action), begin, action.end).dump());
  }
  Json update = Slice(rank, kCompute, "update", trace.update_begin, trace.update_end);
  update["args"] = {{"iteration", trace.iteration}};
  Write(update.dump());
}

void TraceFile::AddTransfer(int rank, int track, const TransferEvent& event,
                            const BucketPlan& plan) {
  if (event.ended == TransferEvent::kNever) return;
  const Bucket& bucket = plan.buckets()[event.bucket];
  double& drawn = drawn_[rank][track];
  const double begin = std::min(std::max(event.started, drawn), event.ended);
  drawn = std::max(drawn, event.ended);
  Json slice = Slice(rank, track, absl::StrCat("bucket ", event.bucket), begin, event.ended);
  Json& args = slice["args"];
  args = {{"first parameter", bucket.pieces[0].parameter->name()},
          {"elements", bucket.numel},
          {"step", event.step},
          {"issued", event.issued * 1e6},
          {"started", event.started * 1e6},
          {"waited_ms", event.waited * 1e3}};
  if (event.wanted != TransferEvent::kNever) args["wanted"] = event.wanted * 1e6;
  Write(slice.dump());
}

void TraceFile::Add(int rank, const StepTrace& trace, const BucketPlan& plan) {
  MutexLock lock(&mutex_);
  NameTracks(rank);
  AddCompute(rank, trace);
  for (const TransferEvent& event : trace.gathers) AddTransfer(rank, kGather, event, plan);
  for (const TransferEvent& event : trace.reductions) AddTransfer(rank, kReduce, event, plan);
  if (!file_.flush() && error_ == 0) error_ = errno;
}

}  // namespace forerun
