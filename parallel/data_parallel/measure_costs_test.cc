// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/measure_costs.h"

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/autograd/testing/test_device.h"
#include "gtest/gtest.h"
#include "parallel/comm/fake/fake_group.h"
#include "parallel/comm/link/link.h"
#include "parallel/comm/link/link_group.h"
#include "parallel/comm/link/virtual_clock.h"
#include "parallel/data_parallel/testing/rank_job.h"

namespace forerun {
namespace {

constexpr MatmulProbe kProbe{2, 3, 4, DType::kF32};

TEST(MeasureCosts, RanksWhoseClocksDifferHoldTheCostsOfTheSlowest) {
  constexpr int kTensor = 2, kData = 3;
  std::vector<std::string> held(kTensor * kData);
  const absl::Status status = RankJob(kTensor * kData).Run([&](const RankContext& rank) {
    const int column = rank.rank % kTensor, row = rank.rank - column;
    const auto tp = rank.factory.Create("tp" + std::to_string(row), std::vector<int>{row, row + 1});
    const auto dp = rank.factory.Create("dp" + std::to_string(column),
                                        std::vector<int>{column, column + 2, column + 4});
    double now = 0.0;
    const auto clock = [&] { return now += 1e-3 * (1 + rank.rank); };  // each look takes so long
    const Costs costs = MeasureCosts(rank.op, {dp.get(), dp.get(), tp.get()}, kProbe, clock);
    held[rank.rank] = costs.ToString();
    EXPECT_NEAR(costs.gather.alpha, 6e-3, 1e-12);
    EXPECT_NEAR(costs.reduce.alpha, 6e-3, 1e-12);
    EXPECT_NEAR(costs.gather.beta, 0.0, 1e-15);
    EXPECT_NEAR(costs.flop, 6e-3 / (2 * 2 * 3 * 4), 1e-12);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  for (const std::string& costs : held) EXPECT_EQ(costs, held[0]);
}

// In virtual time only the link takes any.
class MeasuredLinkTest : public testing::Test {
 protected:
  static constexpr int kRanks = 4;

  Costs Measure(bool sharded) {
    comm::FakeGroupFactory fake(0, kRanks);
    comm::VirtualClock clock;
    comm::LinkGroupFactory factory(
        fake, std::make_shared<comm::Link>(comm::Link::Options{std::chrono::microseconds(200), 1e8},
                                           clock));
    std::vector<int> all(kRanks);
    std::iota(all.begin(), all.end(), 0);
    const std::vector<int> self{0};
    const auto dp = factory.Create("dp", all), one = factory.Create("one", self);
    const DataParallelGroups groups{dp.get(), sharded ? dp.get() : one.get(), one.get()};
    return MeasureCosts(device_.op(), groups, kProbe,
                        [&] { return std::chrono::duration<double>(clock.Now()).count(); });
  }

  const TestDevice device_{DeviceKind::kCpu};
};

TEST_F(MeasuredLinkTest, AlphaAndBetaAreTheLinks) {
  const Costs costs = Measure(/*sharded=*/true);
  for (const LinkCost& link : {costs.gather, costs.reduce}) {
    EXPECT_NEAR(link.alpha, 200e-6, 1e-8);
    EXPECT_NEAR(link.beta, 0.75e-8, 1e-12);  // three quarters of the bytes leave a rank
  }
}

TEST_F(MeasuredLinkTest, WithoutShardsGathersAreFreeAndGradientsAreAllReduced) {
  const Costs costs = Measure(/*sharded=*/false);
  EXPECT_EQ(costs.gather.Seconds(1 << 20), 0.0);
  EXPECT_NEAR(costs.reduce.alpha, 200e-6, 1e-8);
  EXPECT_NEAR(costs.reduce.beta, 2 * 0.75e-8, 1e-12);
}

}  // namespace
}  // namespace forerun
