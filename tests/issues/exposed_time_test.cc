// SPDX-License-Identifier: Apache-2.0
// PyTorch 53427, 79464. The kind of fault: a figure in a report that is not what happened. With an
// injected link time the exposed time of every bucket equals the formula, to the nanosecond, in
// virtual time.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/random/random.h"
#include "gtest/gtest.h"
#include "tests/support/virtual_rank.h"

namespace forerun {
namespace {

using Time = VirtualRank::Time;

std::vector<Time> WaitedBy(const LayeredRank& model, TransferLog& log) {
  std::vector<Time> waited;
  const std::vector<TransferRecord> records = log.records();
  for (int layer = 0; layer < model.layers(); ++layer) {
    waited.push_back(Time(std::llround(1e9 * records[model.bucket(layer)].waited)));
  }
  return waited;
}

// F_k = max(F_(k-1), end of update k) + t_k, and who comes to it at N_k waits until then.
std::vector<Time> ExposedGathers(const VirtualRank::Spec& spec, Time update_begin) {
  const auto layers = static_cast<int>(spec.messages.size());
  std::vector<Time> exposed;
  Time gathered{0};
  Time now = update_begin + layers * spec.update;
  for (int k = 0; k < layers; ++k) {
    gathered = std::max(gathered, update_begin + (k + 1) * spec.update) + spec.messages[k];
    exposed.push_back(std::max(Time(0), gathered - now));
    now += exposed.back() + spec.forward;
  }
  return exposed;
}

// The same in reverse: reductions follow each other from the last layer's on, and the optimizer
// waits for them after the backward pass.
std::vector<Time> ExposedReductions(const VirtualRank::Spec& spec, Time backward_begin) {
  const auto layers = static_cast<int>(spec.messages.size());
  std::vector<Time> exposed(layers);
  Time reduced{0};
  Time now = backward_begin + layers * spec.backward;
  for (int k = layers - 1; k >= 0; --k) {
    reduced = std::max(reduced, backward_begin + (layers - k) * spec.backward) + spec.messages[k];
    exposed[k] = std::max(Time(0), reduced - now);
    now += exposed[k];
  }
  return exposed;
}

VirtualRank::Spec RandomSpec(uint64_t seed) {
  const RandomKey key = RandomKey::Root(seed).Fold("exposed time");
  const auto uniform = [&](uint64_t index, int range) {
    return static_cast<int>(UniformAt(key, index) * static_cast<float>(range));
  };
  VirtualRank::Spec spec;
  spec.messages.resize(1 + uniform(0, 12));
  for (size_t i = 0; i < spec.messages.size(); ++i) {
    spec.messages[i] = VirtualRank::kUnit * (1 + uniform(1 + i, 40));
  }
  spec.forward = Time(uniform(100, 4'000'000));
  spec.backward = Time(uniform(101, 4'000'000));
  spec.update = Time(uniform(102, 2) * uniform(103, 1'000'000));
  return spec;
}

TEST(ExposedTime, OfGathersAndReductionsEqualsTheFormulaInVirtualTime) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const VirtualRank::Spec spec = RandomSpec(seed);
    VirtualRank rank(spec);
    rank.Forward();
    rank.Backward();
    const Time update_begin = rank.WaitForReductions();
    rank.Update();
    rank.model().gate().log().ResetRecords();
    rank.model().reducer().log().ResetRecords();
    const Time backward_begin = rank.Forward();
    rank.Backward();
    rank.WaitForReductions();
    EXPECT_EQ(WaitedBy(rank.model(), rank.model().gate().log()), ExposedGathers(spec, update_begin))
        << seed;
    EXPECT_EQ(WaitedBy(rank.model(), rank.model().reducer().log()),
              ExposedReductions(spec, backward_begin))
        << seed;
  }
}

TEST(ExposedTime, WithoutOverlapIsEveryMessagesOwnTime) {
  VirtualRank::Spec spec = RandomSpec(7);
  spec.overlap = false;
  VirtualRank rank(spec);
  rank.Forward();
  rank.Backward();
  rank.WaitForReductions();
  rank.Update();
  EXPECT_EQ(WaitedBy(rank.model(), rank.model().gate().log()), spec.messages);
  EXPECT_EQ(WaitedBy(rank.model(), rank.model().reducer().log()), spec.messages);
}

}  // namespace
}  // namespace forerun
