// SPDX-License-Identifier: Apache-2.0
// DeepSpeed 7804, 7805: two gradient buffers in turn; a buffer was filled again while its reduction
// still ran, and the fix that waited for it ended all overlap. The kind of fault: right sums or
// overlap, but not both.
#include <chrono>
#include <memory>
#include <vector>

#include "core/autograd/testing/test_device.h"
#include "core/nn/registry.h"
#include "gtest/gtest.h"
#include "parallel/comm/fake/fake_group.h"
#include "parallel/comm/link/link.h"
#include "parallel/comm/link/link_group.h"
#include "parallel/comm/link/virtual_clock.h"
#include "parallel/comm/link/wall_clock.h"
#include "parallel/data_parallel/testing/rank_job.h"
#include "tests/support/reducing_rank.h"

namespace forerun {
namespace {

constexpr int64_t kNumel = 1024;  // of each of three buckets

class DeepSpeed7804 : public testing::Test {
 protected:
  DeepSpeed7804() {
    for (const char* name : {"a", "b", "c"}) {
      order_.push_back(&registry_.Declare(
          {.name = name, .global_shape = {kNumel}, .box = Box::Whole({kNumel})}, Init::Zeros()));
    }
  }

  ParameterRegistry registry_;
  std::vector<const Parameter*> order_;
};

TEST_F(DeepSpeed7804, SumsAreRightOverASlowLink) {
  comm::WallClock clock;
  const absl::Status status = RankJob(2).Run([&](const RankContext& rank) {
    const auto link =
        std::make_shared<comm::Link>(comm::Link::Options{std::chrono::milliseconds(2)}, clock);
    const auto group = comm::LinkGroupFactory(rank.factory, link).Create("linked", {0, 1});
    ReducingRank self(order_, kNumel, rank.op, *group, {}, [] { return 0.0; });
    EXPECT_EQ(self.plan().buckets().size(), 3u);
    for (int step = 0; step < 4; ++step) {
      self.Step(step, /*microbatches=*/2);
      EXPECT_EQ(self.WrongSums(step, 2), 0) << "step " << step;
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

// 100 ns of compute before each contribution, 80 ns for each reduction: only the last is exposed.
TEST_F(DeepSpeed7804, AllButTheLastReductionAreHidden) {
  comm::VirtualClock clock;
  comm::FakeGroupFactory fake(0, 2);
  const auto link = std::make_shared<comm::Link>(comm::Link::Options{comm::Clock::Time(80)}, clock);
  const auto group = comm::LinkGroupFactory(fake, link).Create("linked", {0, 1});
  const TestDevice meta(DeviceKind::kMeta);
  ReducingRank self(order_, kNumel, meta.op(), *group, {},
                    [&] { return static_cast<double>(clock.Now().count()); });
  self.Step(0, /*microbatches=*/1, [&] { clock.AdvanceBy(comm::Clock::Time(100)); });
  EXPECT_EQ(clock.Now().count(), 3 * 100 + 80);
  double exposed = 0.0, in_flight = 0.0;
  for (const TransferRecord& record : self.reducer().log().records()) {
    exposed += record.waited;
    in_flight += record.in_flight;
  }
  EXPECT_EQ(exposed, 80.0);
  EXPECT_EQ(in_flight - exposed, 160.0) << "overlap";
}

}  // namespace
}  // namespace forerun
