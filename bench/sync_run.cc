// SPDX-License-Identifier: Apache-2.0
#include "bench/sync_run.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/autograd/testing/test_device.h"
#include "parallel/comm/fake/fake_group.h"
#include "parallel/comm/link/link_group.h"
#include "parallel/comm/link/virtual_clock.h"
#include "parallel/comm/link/wall_clock.h"
#include "parallel/data_parallel/testing/rank_job.h"
#include "parallel/data_parallel/transfer_log.h"

namespace forerun {
namespace {

using comm::Clock;

constexpr double kWallThreshold = 0.1;  // of a gather's own time

SecondsClock SecondsOf(const Clock& clock) {
  return [&clock] { return std::chrono::duration<double>(clock.Now()).count(); };
}

// One step; `pass` lets time go by. A gather that was waited for longer than `threshold` of its own
// time is exposed.
SyncResult RunStep(const SyncCase& sync_case, GatherDriver& driver, const SecondsClock& now,
                   absl::FunctionRef<void(Clock::Time)> pass, double threshold) {
  const double begin = now();
  for (int layer = 0; layer < sync_case.layers(); ++layer) {
    driver.Update(layer, [&] { pass(sync_case.update); });
  }
  driver.EndUpdate();
  for (int layer = 0; layer < sync_case.layers(); ++layer) {
    driver.Read(layer);
    pass(sync_case.compute);
  }
  SyncResult result;
  result.step_seconds = now() - begin;
  const std::vector<double> waited = driver.TakeWaited();
  for (int layer = 0; layer < sync_case.layers(); ++layer) {
    result.exposed_seconds += waited[layer];
    if (waited[layer] > threshold * sync_case.GatherSeconds(layer)) ++result.exposed_gathers;
  }
  return result;
}

template <typename T>
T Median(const std::vector<SyncResult>& steps, T SyncResult::*figure) {
  std::vector<T> values;
  for (const SyncResult& step : steps) values.push_back(step.*figure);
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

SyncResult RunVirtual(const SyncCase& sync_case, GatherPolicy policy) {
  comm::VirtualClock clock;
  const TestDevice device(DeviceKind::kCpu);
  comm::FakeGroupFactory fake(0, 2);
  comm::LinkGroupFactory linked(fake, std::make_shared<comm::Link>(sync_case.link, clock));
  const std::unique_ptr<comm::ProcessGroup> group = linked.Create("dp", {0, 1});
  const SecondsClock now = SecondsOf(clock);
  const std::unique_ptr<GatherDriver> driver =
      MakeGatherDriver(policy, sync_case, device.op(), *group, now);
  const auto pass = [&clock](Clock::Time time) { clock.AdvanceBy(time); };
  RunStep(sync_case, *driver, now, pass, 0.0);
  return RunStep(sync_case, *driver, now, pass, 0.0);
}

absl::StatusOr<SyncResult> RunWall(const SyncCase& sync_case, GatherPolicy policy, int steps) {
  comm::WallClock clock;
  std::vector<SyncResult> results;  // of rank 0
  RankJob job(2);
  const absl::Status status = job.Run([&](const RankContext& rank) {
    comm::LinkGroupFactory linked(rank.factory,
                                  std::make_shared<comm::Link>(sync_case.link, clock));
    const std::unique_ptr<comm::ProcessGroup> group = linked.Create("linked", {0, 1});
    const SecondsClock now = SecondsOf(clock);
    const std::unique_ptr<GatherDriver> driver =
        MakeGatherDriver(policy, sync_case, rank.op, *group, now);
    const auto pass = [](Clock::Time time) { std::this_thread::sleep_for(time); };
    for (int step = 0; step <= steps; ++step) {
      const SyncResult result = RunStep(sync_case, *driver, now, pass, kWallThreshold);
      if (rank.rank == 0 && step > 0) results.push_back(result);
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return SyncResult{Median(results, &SyncResult::exposed_gathers),
                    Median(results, &SyncResult::exposed_seconds),
                    Median(results, &SyncResult::step_seconds)};
}

}  // namespace forerun
