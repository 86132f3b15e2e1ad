// SPDX-License-Identifier: Apache-2.0
// A real training step of two ranks over a slow link, against the bound of DESIGN section 6, with
// overlap and without:
//   bazel run -c opt //bench:training_step -- --benchmark_repetitions=5
//     --benchmark_display_aggregates_only
// Names: policy / the link, as its rate in MB/s or as the time of all messages over that of all
// compute. A run measures compute without a link, then the step with it, each the median of
// several steps, in milliseconds; the time of a benchmark is the step's. With repetitions the
// library prints the median of each figure over runs.
#include <string>
#include <vector>

#include "bench/step_bound.h"
#include "bench/training_run.h"
#include "benchmark/benchmark.h"
#include "core/base/status_macros.h"

namespace forerun {
namespace {

constexpr int kRanks = 2;

// Either a rate, or a ratio of messages to compute from which the rate follows.
struct Speed {
  double bytes_per_second = 0.0;
  double messages_over_compute = 0.0;
};

int64_t WireBytesOf(comm::OpKind kind, const TrainingResult& run) {
  int64_t bytes = 0;
  for (int64_t bucket : run.bucket_bytes) bytes += comm::WireBytes(kind, bucket, kRanks);
  return bytes;
}

double RateOf(const Speed& speed, const TrainingResult& compute) {
  if (speed.bytes_per_second > 0.0) return speed.bytes_per_second;
  const int64_t bytes = WireBytesOf(comm::OpKind::kAllGather, compute) +
                        WireBytesOf(comm::OpKind::kReduceScatter, compute);
  const double seconds = compute.forward + compute.backward + compute.update;
  return static_cast<double>(bytes) / (seconds * speed.messages_over_compute);
}

StepWork WorkOf(const TrainingResult& compute, double rate) {
  StepWork work{compute.forward, compute.backward, compute.update};
  for (int64_t bytes : compute.bucket_bytes) {
    const auto wire = static_cast<double>(comm::WireBytes(comm::OpKind::kAllGather, bytes, kRanks));
    work.gathers.push_back(wire / rate);  // a reduce-scatter is as long
  }
  work.reductions.assign(work.gathers.rbegin(), work.gathers.rend());
  return work;
}

struct Comparison {
  TrainingResult compute;  // without a link
  TrainingResult linked;
  double bound = 0.0;
};

absl::StatusOr<Comparison> Compare(bool overlap, const Speed& speed) {
  TrainingSpec spec = Gpt26M();
  spec.options.data_parallel.overlap_grad_reduce = overlap;
  spec.options.data_parallel.overlap_param_gather = overlap;
  Comparison result;
  FR_ASSIGN_OR_RETURN(result.compute, RunTraining(spec));
  spec.link.bytes_per_second = RateOf(speed, result.compute);
  FR_ASSIGN_OR_RETURN(result.linked, RunTraining(spec));
  result.bound = BoundSeconds(WorkOf(result.compute, spec.link.bytes_per_second));
  return result;
}

void Report(const Comparison& run, benchmark::State& state) {
  state.SetIterationTime(run.linked.step);
  state.counters["forward"] = run.compute.forward * 1e3;
  state.counters["backward"] = run.compute.backward * 1e3;
  state.counters["update"] = run.compute.update * 1e3;
  state.counters["exposed_gather"] = run.linked.exposed_gather * 1e3;
  state.counters["exposed_reduce"] = run.linked.exposed_reduce * 1e3;
  state.counters["bound"] = run.bound * 1e3;
  state.counters["step/bound"] = run.linked.step / run.bound;
}

void BM_TrainingStep(benchmark::State& state, bool overlap, const Speed& speed) {
  for (auto _ : state) {
    const auto run = Compare(overlap, speed);
    if (!run.ok()) {
      state.SkipWithError(std::string(run.status().message()).c_str());
      return;
    }
    Report(*run, state);
  }
}

void RegisterAll() {
  struct Row {
    const char* name;
    Speed speed;
  };
  const std::vector<Row> rows = {
      {"118MB/s", {118e6, 0.0}}, {"0.5", {0.0, 0.5}}, {"1", {0.0, 1.0}}, {"2", {0.0, 2.0}}};
  for (const Row& row : rows) {
    for (const bool overlap : {true, false}) {
      const std::string name = std::string(overlap ? "overlap/" : "blocking/") + row.name;
      benchmark::RegisterBenchmark(name.c_str(), BM_TrainingStep, overlap, row.speed)
          ->Iterations(1)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
}

}  // namespace
}  // namespace forerun

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  forerun::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
