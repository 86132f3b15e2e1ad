// SPDX-License-Identifier: Apache-2.0
// What the always-on records cost: one bucket message in the transfer log from issue to end, and
// one read that the order watch sees. Events a step times these, against the step, is the share
// that recording takes (bench/results.md).
#include <benchmark/benchmark.h>

#include <chrono>

#include "core/autograd/parameter.h"
#include "core/autograd/tape.h"
#include "parallel/data_parallel/forward_order.h"
#include "parallel/data_parallel/order_watch.h"
#include "parallel/data_parallel/transfer_log.h"

namespace forerun {
namespace {

double SteadySeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void TransferOfABucket(benchmark::State& state) {
  TransferLog log({1 << 20}, SteadySeconds);
  int64_t step = 0;
  for (auto _ : state) {
    const int64_t id = log.Issued(0, ++step);
    log.Started(id);
    log.Wanted(id, log.Now());
    log.Ended(id);
    log.Waited(id, 1e-3, false, "layer");
    benchmark::DoNotOptimize(log.TakeEvents());
  }
}
BENCHMARK(TransferOfABucket);

void WatchedRead(benchmark::State& state) {
  constexpr int kReads = 64;
  ParameterSpec spec;
  spec.name = "weight";
  spec.global_shape = {4};
  spec.box = Box::Whole(spec.global_shape);
  const Parameter parameter(0, spec);
  const Parameter* const parameters[] = {&parameter};
  const auto graph = RecordForwardOrder(parameters, [&](ParamReader& reader, Tape&) {
    InlineStream stream(Device{DeviceKind::kMeta});
    for (int i = 0; i < kReads; ++i) (void)reader.Read(parameter, stream, "layer");
  });
  OrderWatch watch(*graph);
  for (auto _ : state) {
    watch.BeginPass();
    for (int i = 0; i < kReads; ++i) watch.OnRead(parameter);
    watch.EndPass();
  }
  state.SetItemsProcessed(state.iterations() * kReads);
}
BENCHMARK(WatchedRead);

}  // namespace
}  // namespace forerun

BENCHMARK_MAIN();
