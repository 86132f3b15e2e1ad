// SPDX-License-Identifier: Apache-2.0
// What gathers of parameters cost under each policy, for the same model and link:
//   bazel run -c opt //bench:param_sync
//   bazel run -c opt //bench:param_sync -- --benchmark_filter=virtual/8/1.0
// Names: clock / layers / gather time over compute time / registration order / policy. The time of
// a benchmark is the step's, in the clock it names. Counters: gathers that were exposed, exposed
// time, the step over the bound of DESIGN section 6.
#include <string>

#include "absl/strings/str_format.h"
#include "bench/sync_run.h"
#include "benchmark/benchmark.h"

namespace forerun {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCompute{20};
constexpr int kWallSteps = 5;

void Report(const SyncCase& sync_case, const SyncResult& result, benchmark::State& state) {
  state.SetIterationTime(result.step_seconds);
  state.counters["exposed"] = result.exposed_gathers;
  state.counters["exposed_ms"] = result.exposed_seconds * 1e3;
  state.counters["exposed/gather"] = result.exposed_seconds / sync_case.GatherSeconds(0);
  state.counters["step/bound"] = result.step_seconds / sync_case.BoundSeconds();
}

void BM_Virtual(benchmark::State& state, const SyncCase& sync_case, GatherPolicy policy) {
  for (auto _ : state) Report(sync_case, RunVirtual(sync_case, policy), state);
}

void BM_Wall(benchmark::State& state, const SyncCase& sync_case, GatherPolicy policy) {
  for (auto _ : state) {
    const auto result = RunWall(sync_case, policy, kWallSteps);
    if (!result.ok()) {
      state.SkipWithError(std::string(result.status().message()).c_str());
      return;
    }
    Report(sync_case, *result, state);
  }
}

using Body = void (*)(benchmark::State&, const SyncCase&, GatherPolicy);

void Register(const std::string& model, const SyncCase& sync_case, Body body) {
  for (const GatherPolicy policy : GatherPolicies()) {
    benchmark::RegisterBenchmark((model + "/" + NameOf(policy)).c_str(), body, sync_case, policy)
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
}

void RegisterAll() {
  for (const int layers : {8, 24}) {
    for (const double ratio : {0.5, 1.0, 2.0}) {
      for (const std::string& order : RegistrationNames()) {
        const SyncCase equal = EqualBuckets(layers, order, kCompute, ratio);
        const std::string name = absl::StrFormat("%d/%.1f/%s", layers, ratio, order);
        Register("virtual/" + name, equal, BM_Virtual);
        SyncCase small_first = equal;
        small_first.numel[0] /= 4;
        Register("virtual-small-first/" + name, small_first, BM_Virtual);
        SyncCase updated = equal;
        updated.update = milliseconds(3);
        Register("virtual-with-update/" + name, updated, BM_Virtual);
        if (layers == 8) Register("wall/" + name, equal, BM_Wall);
      }
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
