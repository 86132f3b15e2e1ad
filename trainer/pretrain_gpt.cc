// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "trainer/arguments.h"
#include "trainer/dry_run.h"
#include "trainer/forward_order_dump.h"
#include "trainer/metrics.h"
#include "trainer/trace_file.h"
#include "trainer/training_loop.h"

namespace forerun {
namespace {

constexpr int kUsageError = 2;
constexpr int kFailure = 1;

void PrintLine(absl::string_view text) {
  std::printf("%.*s\n", static_cast<int>(text.size()), text.data());
  std::fflush(stdout);
}

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "pretrain_gpt: %s\n", std::string(status.message()).c_str());
  return code;
}

absl::Status Train(const Arguments& arguments) {
  absl::optional<MetricsFile> metrics;
  if (!arguments.output.metrics_file.empty()) {
    absl::StatusOr<MetricsFile> opened = MetricsFile::Open(arguments.output.metrics_file);
    if (!opened.ok()) return opened.status();
    metrics = *std::move(opened);
  }
  std::unique_ptr<TraceFile> trace;
  if (!arguments.output.trace_file.empty()) {
    absl::StatusOr<std::unique_ptr<TraceFile>> opened =
        TraceFile::Open(arguments.output.trace_file);
    if (!opened.ok()) return opened.status();
    trace = *std::move(opened);
  }
  absl::Status written;  // the first failure; training is worth more than its records
  const auto note = [&](const absl::Status& status) {
    if (status.ok() || !written.ok()) return;
    written = status;
    PrintLine(absl::StrCat(status.message(), "; the run goes on without it"));
  };
  TrainingOutput output;
  output.print = PrintLine;
  output.on_step = [&](const StepMetrics& step) {
    if (metrics.has_value() && written.ok()) note(metrics->Write(step));
    if (trace != nullptr) note(trace->status());
  };
  if (trace != nullptr) {
    output.on_trace = [&](int rank, const StepTrace& step, const BucketPlan& plan) {
      trace->Add(rank, step, plan);
    };
  }
  const absl::Status trained = TrainWithThreads(arguments, output);
  if (!trained.ok()) return trained;
  if (trace != nullptr) note(trace->status());
  return written;
}

int Main(const std::vector<std::string>& args) {
  const absl::StatusOr<Arguments> arguments = ParseArguments(args);
  if (absl::IsNotFound(arguments.status())) {  // --help
    PrintLine(arguments.status().message());
    return 0;
  }
  if (!arguments.ok()) return Fail(arguments.status(), kUsageError);
  if (!arguments->output.dump_forward_order.empty()) {
    const absl::Status dumped = DumpForwardOrder(*arguments);
    if (!dumped.ok()) return Fail(dumped, kUsageError);
  }
  if (arguments->output.dry_run) {
    const absl::StatusOr<std::string> plan = DryRun(*arguments);
    if (!plan.ok()) return Fail(plan.status(), kUsageError);
    PrintLine(*plan);
    return 0;
  }
  const absl::Status status = Train(*arguments);
  return status.ok() ? 0 : Fail(status, kFailure);
}

}  // namespace
}  // namespace forerun

int main(int argc, char** argv) {
  return forerun::Main(std::vector<std::string>(argv + 1, argv + argc));
}
