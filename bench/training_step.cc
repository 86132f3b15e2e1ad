// SPDX-License-Identifier: Apache-2.0
// A real training step of two ranks over a slow link, against the bound of DESIGN section 6, with
// overlap and without:
//   bazel run -c opt //bench:training_step
//   bazel run -c opt //bench:training_step -- --benchmark_filter=118
// Names: policy / the link, as its rate in MB/s or as the time of all messages over that of all
// compute. The time of a benchmark is the step's; every figure is the median of 5 runs, each of
// which measures compute without a link and the step with it, one after the other.
#include <algorithm>
#include <string>
#include <vector>

#include "bench/step_bound.h"
#include "bench/training_run.h"
#include "benchmark/benchmark.h"
#include "core/base/status_macros.h"

namespace forerun {
namespace {

constexpr int kRuns = 5;
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

template <typename Figure>
double Median(const std::vector<Comparison>& runs, const Figure& figure) {
  std::vector<double> values;
  for (const Comparison& run : runs) values.push_back(figure(run));
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void Report(const std::vector<Comparison>& runs, benchmark::State& state) {
  const auto milliseconds = [&](double TrainingResult::*figure, TrainingResult Comparison::*of) {
    return 1e3 * Median(runs, [&](const Comparison& run) { return run.*of.*figure; });
  };
  using C = Comparison;
  using R = TrainingResult;
  state.SetIterationTime(milliseconds(&R::step, &C::linked) / 1e3);
  state.counters["forward"] = milliseconds(&R::forward, &C::compute);
  state.counters["backward"] = milliseconds(&R::backward, &C::compute);
  state.counters["update"] = milliseconds(&R::update, &C::compute);
  state.counters["exposed_gather"] = milliseconds(&R::exposed_gather, &C::linked);
  state.counters["exposed_reduce"] = milliseconds(&R::exposed_reduce, &C::linked);
  state.counters["bound"] = 1e3 * Median(runs, [](const C& run) { return run.bound; });
  state.counters["step/bound"] =
      Median(runs, [](const C& run) { return run.linked.step / run.bound; });
}

void BM_TrainingStep(benchmark::State& state, bool overlap, const Speed& speed) {
  for (auto _ : state) {
    std::vector<Comparison> runs;
    while (runs.size() < kRuns) {
      const auto run = Compare(overlap, speed);
      if (!run.ok()) {
        state.SkipWithError(std::string(run.status().message()).c_str());
        return;
      }
      runs.push_back(*run);
    }
    Report(runs, state);
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
