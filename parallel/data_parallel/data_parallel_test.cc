// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/data_parallel.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/device/device.h"
#include "core/ops/compute_work.h"
#include "core/random/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "parallel/data_parallel/testing/rank_job.h"
#include "parallel/data_parallel/testing/test_parameters.h"

namespace forerun {
namespace {

double NoClock() { return 0.0; }
double Steady() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class DataParallelTest : public testing::Test {
 protected:
  // A chunk that reads `uses` in this order, with so many flops before each.
  static DataParallel::Chunk MakeChunk(std::vector<const Parameter*>& parameters,
                                       const std::vector<const Parameter*>& uses, int64_t flops) {
    InlineStream stream(Device{DeviceKind::kMeta});
    ComputeWork work;
    auto graph = RecordForwardOrder(
        parameters,
        [&](ParamReader& reader, Tape&) {
          for (const Parameter* parameter : uses) {
            work.flops += flops;
            reader.Read(*parameter, stream, "layer");
          }
        },
        &work);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return {parameters, *std::move(graph)};
  }

  std::vector<const Parameter*> Used() const {
    return {parameters_.order().begin(), parameters_.order().end()};
  }
  std::vector<const Parameter*> All() const {
    std::vector<const Parameter*> all = Used();
    all.insert(all.end(), parameters_.frozen().begin(), parameters_.frozen().end());
    return all;
  }

  // Tensor parallelism of one rank, and a gather group that fits the plan.
  absl::Status RunRank(const RankContext& rank, const DataParallelOptions& options,
                       std::vector<const Parameter*> all, const std::vector<const Parameter*>& uses,
                       const std::function<absl::Status(DataParallel&)>& body,
                       const SecondsClock& clock = NoClock) {
    const std::vector<int> self{rank.rank};
    const auto one = rank.factory.Create("tp", self);
    DataParallelGroups groups;
    groups.reduce = &rank.group;
    groups.gather = options.shard_optimizer ? &rank.group : one.get();
    groups.tensor_parallel = one.get();
    std::vector<DataParallel::Chunk> chunks = {MakeChunk(all, uses, work_of_a_use_[rank.rank])};
    auto data_parallel = DataParallel::Create(rank.op, groups, std::move(chunks), options, clock);
    if (!data_parallel.ok()) return data_parallel.status();
    return body(**data_parallel);
  }

  const TestParameters parameters_;
  std::array<int64_t, 4> work_of_a_use_{};  // flops, by rank
};

TEST_F(DataParallelTest, PutsGateAndReducerOverOneBufferInFirstUseOrder) {
  for (bool shard : {false, true}) {
    DataParallelOptions options;
    options.shard_optimizer = shard;
    options.bucket_numel = 100;
    const absl::Status status = RankJob(2).Run([&](const RankContext& rank) {
      std::vector<const Parameter*> uses = Used();
      std::reverse(uses.begin(), uses.end());
      return RunRank(rank, options, All(), uses, [&](DataParallel& self) {
        EXPECT_EQ(self.plan().shards(), shard ? 2 : 1);
        EXPECT_EQ(self.shard(), shard ? rank.rank : 0);
        EXPECT_EQ(std::vector<const Parameter*>(self.plan().parameters().begin(),
                                                self.plan().parameters().end()),
                  uses);
        parameters_.Initialise(self.buffer());
        const auto value =
            self.gate().Read(parameters_.named("frozen"), *rank.op.stream, "layer").tensor();
        EXPECT_EQ(value.numel(), 5);
        self.reducer().BeginStep(1);
        self.reducer().Announce(0, {});
        for (size_t b = self.plan().buckets().size(); b-- > 0;) {
          self.reducer().Wait(static_cast<int>(b), *rank.op.stream);
        }
        return absl::OkStatus();
      });
    });
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_F(DataParallelTest, RanksThatWouldPlanDifferentlyAreToldTheFirstDifference) {
  DataParallelOptions options;
  options.bucket_numel = 100;
  std::vector<std::string> told(2);
  (void)RankJob(2).Run([&](const RankContext& rank) {
    std::vector<const Parameter*> uses = Used();
    if (rank.rank == 1) std::swap(uses[2], uses[3]);
    const absl::Status status =
        RunRank(rank, options, All(), uses, [](DataParallel&) { return absl::OkStatus(); });
    told[rank.rank] = std::string(status.message());
    return status;
  });
  EXPECT_EQ(told[0], absl::StrCat("ranks of group dp differ in their model: rank 0 has \"use of ",
                                  Used()[2]->name(), " by layer\" where rank 1 has \"use of ",
                                  Used()[3]->name(), " by layer\""));
  EXPECT_EQ(told[1], told[0]);
}

// PyTorch 194908.
TEST_F(DataParallelTest, RanksThatMeasureDifferentTimesHoldOnePlanAndPrediction) {
  constexpr int kRanks = 4;
  std::vector<std::string> plans(kRanks);
  std::vector<double> exposed(kRanks);
  const absl::Status status = RankJob(kRanks).Run([&](const RankContext& rank) {
    const RandomKey key = RandomKey::Root(11).Fold(rank.rank);
    double now = 0.0;
    uint64_t looks = 0;
    const auto clock = [&] { return now += 1e-3 * UniformAt(key, looks++); };
    return RunRank(
        rank, {}, All(), Used(),
        [&](DataParallel& self) {
          plans[rank.rank] = self.costs().ToString() + self.plan().ToString();
          exposed[rank.rank] = self.prediction().exposed();
          return absl::OkStatus();
        },
        clock);
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GT(exposed[0], 0.0);
  EXPECT_NE(plans[0].find(Costs::Nominal().ToString()), 0u) << "nothing was measured";
  for (int rank = 1; rank < kRanks; ++rank) {
    EXPECT_EQ(plans[rank], plans[0]);
    EXPECT_EQ(exposed[rank], exposed[0]);
  }
}

// One rank took a branch that others have not recorded.
TEST_F(DataParallelTest, RanksWhoseComputeDiffersHoldOnePlanAndPrediction) {
  std::vector<std::string> plans(2);
  std::vector<double> exposed(2);
  const absl::Status status = RankJob(2).Run([&](const RankContext& rank) {
    const auto body = [&](DataParallel& self) {
      plans[rank.rank] = self.plan().ToString();
      exposed[rank.rank] = self.prediction().exposed();
      return absl::OkStatus();
    };
    work_of_a_use_[rank.rank] = 1000000 * (1 + rank.rank);
    return RunRank(rank, {}, All(), Used(), body, Steady);
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(plans[1], plans[0]);
  EXPECT_EQ(exposed[1], exposed[0]);
}

TEST_F(DataParallelTest, AloneOrAtAGivenSizeNothingIsMeasured) {
  for (int ranks : {1, 2}) {
    DataParallelOptions options;
    if (ranks > 1) options.bucket_numel = 100;
    const absl::Status status = RankJob(ranks).Run([&](const RankContext& rank) {
      return RunRank(rank, options, All(), Used(), [ranks](DataParallel& self) {
        EXPECT_EQ(self.prediction().exposed() > 0.0, ranks > 1);
        EXPECT_EQ(self.costs().ToString(), Costs::Nominal().ToString());
        EXPECT_EQ(self.prediction().buckets.size(), self.plan().buckets().size());
        return absl::OkStatus();
      });
    });
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST_F(DataParallelTest, RanksThatWerePricedDifferentlyAreToldSo) {
  const absl::Status status = RankJob(2).Run([&](const RankContext& rank) {
    DataParallelOptions options;
    options.costs = Costs::Nominal();
    options.costs->flop *= 1 + rank.rank;
    return RunRank(rank, options, All(), Used(), [](DataParallel&) { return absl::OkStatus(); });
  });
  EXPECT_NE(std::string(status.message()).find("differ in their bucket plan: rank 0 has \"costs: "),
            std::string::npos)
      << status;
}

// What each of two ranks is told.
std::vector<std::string> Told(const std::function<absl::Status(const RankContext&)>& run) {
  std::vector<std::string> told(2);
  (void)RankJob(2).Run([&](const RankContext& rank) {
    const absl::Status status = run(rank);
    told[rank.rank] = std::string(status.message());
    return status;
  });
  return told;
}

// Horovod 100, 2640: a rank with one parameter more leaves the others waiting for ever.
TEST_F(DataParallelTest, AParameterThatOneRankHasMoreIsNamed) {
  ParameterSpec spec;
  spec.name = "extra";
  spec.global_shape = {7};
  spec.box = Box::Whole(spec.global_shape);
  const Parameter extra(100, spec);
  const std::vector<std::string> told = Told([&](const RankContext& rank) {
    std::vector<const Parameter*> all = All(), uses = Used();
    if (rank.rank == 1) {
      all.push_back(&extra);
      uses.push_back(&extra);
    }
    return RunRank(rank, {}, all, uses, [](DataParallel&) { return absl::OkStatus(); });
  });
  EXPECT_THAT(told[0], testing::HasSubstr("where rank 1 has \"parameter extra: fp32"));
  EXPECT_EQ(told[1], told[0]);
}

// PyTorch 158719: a branch that one rank alone takes, with the same parameters on all.
TEST_F(DataParallelTest, ABranchThatOneRankAloneTakesIsNamed) {
  const std::vector<std::string> told = Told([&](const RankContext& rank) {
    std::vector<const Parameter*> uses = Used();
    if (rank.rank == 0) uses.push_back(uses[1]);
    return RunRank(rank, {}, All(), uses, [](DataParallel&) { return absl::OkStatus(); });
  });
  EXPECT_THAT(told[0], testing::HasSubstr(absl::StrCat("rank 0 has \"use of ", Used()[1]->name(),
                                                       " by layer\" where rank 1 has ")));
  EXPECT_EQ(told[1], told[0]);
}

// And one that leaves out a parameter which nothing declares optional.
TEST_F(DataParallelTest, AParameterThatOneRankAloneLeavesOutIsNamed) {
  const std::vector<std::string> told = Told([&](const RankContext& rank) {
    std::vector<const Parameter*> uses = Used();
    if (rank.rank == 1) uses.erase(uses.begin());
    const std::vector<const Parameter*> all = All();
    InlineStream stream(Device{DeviceKind::kMeta});
    const auto graph = RecordForwardOrder(all, [&](ParamReader& reader, Tape&) {
      for (const Parameter* parameter : uses) reader.Read(*parameter, stream, "layer");
    });
    if (!graph.ok()) return graph.status();
    return RunRank(rank, {}, all, uses, [](DataParallel&) { return absl::OkStatus(); });
  });
  EXPECT_THAT(told[1], testing::HasSubstr(absl::StrCat("reads ", Used()[0]->name())));
}

TEST_F(DataParallelTest, RegistrationInAnotherOrderIsNoDifference) {
  const std::vector<std::string> told = Told([&](const RankContext& rank) {
    std::vector<const Parameter*> all = All();
    if (rank.rank == 1) std::reverse(all.begin(), all.end());
    return RunRank(rank, {}, all, Used(), [](DataParallel&) { return absl::OkStatus(); });
  });
  EXPECT_EQ(told[0], "");
  EXPECT_EQ(told[1], "");
}

}  // namespace
}  // namespace forerun
