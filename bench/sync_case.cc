// SPDX-License-Identifier: Apache-2.0
#include "bench/sync_case.h"

#include <algorithm>
#include <numeric>

#include "bench/step_bound.h"
#include "core/base/check.h"
#include "core/random/random.h"

namespace forerun {
namespace {

constexpr int kRanks = 2;
constexpr int64_t kEqualNumel = 1024;

double Seconds(comm::Clock::Time time) { return std::chrono::duration<double>(time).count(); }

int64_t WireBytesOf(int64_t numel) {
  return comm::WireBytes(comm::OpKind::kAllGather, numel * 4, kRanks);
}

}  // namespace

double SyncCase::GatherSeconds(int layer) const {
  return Seconds(link.latency) +
         static_cast<double>(WireBytesOf(numel[layer])) / link.bytes_per_second;
}

double SyncCase::BoundSeconds() const {
  StepWork work{.forward = Seconds(compute) * layers(), .update = Seconds(update) * layers()};
  for (int layer = 0; layer < layers(); ++layer) work.gathers.push_back(GatherSeconds(layer));
  return forerun::BoundSeconds(work);
}

std::vector<std::string> RegistrationNames() {
  return {"in-order", "late-norm", "pairs-swapped", "reversed", "shuffled"};
}

std::vector<int> RegistrationByName(const std::string& name, int layers) {
  std::vector<int> order(layers);
  std::iota(order.begin(), order.end(), 0);
  if (name == "late-norm") {
    std::rotate(order.begin() + layers / 2, order.begin() + layers / 2 + 1, order.end());
  } else if (name == "pairs-swapped") {
    for (int i = 0; i + 1 < layers; i += 2) std::swap(order[i], order[i + 1]);
  } else if (name == "reversed") {
    std::reverse(order.begin(), order.end());
  } else if (name == "shuffled") {
    const RandomKey key = RandomKey::Root(4).Fold("registration");
    for (int i = 0; i < layers; ++i) order[i] = static_cast<int>(PermutationAt(key, layers, i));
  } else {
    FR_CHECK(name == "in-order") << "no registration order " << name;
  }
  return order;
}

SyncCase EqualBuckets(int layers, const std::string& registration, comm::Clock::Time compute,
                      double link_ratio) {
  SyncCase result;
  result.numel.assign(layers, kEqualNumel);
  result.registration = RegistrationByName(registration, layers);
  result.compute = compute;
  result.link.bytes_per_second =
      static_cast<double>(WireBytesOf(kEqualNumel)) / (Seconds(compute) * link_ratio);
  return result;
}

}  // namespace forerun
