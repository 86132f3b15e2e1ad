// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/param_gate.h"

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/autograd/testing/test_device.h"
#include "gtest/gtest.h"
#include "parallel/comm/process_group.h"
#include "parallel/comm/work.h"
#include "parallel/data_parallel/testing/gate_rank.h"
#include "parallel/data_parallel/testing/rank_job.h"
#include "parallel/data_parallel/testing/test_parameters.h"

namespace forerun {
namespace {

TEST(ParamGate, ReadsGiveReadOnlyTensorsOfTheParametersShape) {
  const TestParameters parameters(/*mixed=*/true);
  const absl::Status status = RankJob(1).Run([&](const RankContext& rank) {
    GateRank self(parameters, rank.op, rank.group, {});
    for (const char* name : {"cut", "first", "frozen"}) {
      const Parameter& parameter = parameters.named(name);
      const Tensor value = self.gate().Read(parameter, *rank.op.stream, "layer").tensor();
      EXPECT_TRUE(value.read_only());
      EXPECT_EQ(value.shape(), parameter.shape());
      EXPECT_EQ(value.dtype(), parameter.dtype());
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(ParamGate, ALiveLeaseIsRefusedNamingParameterAndHolder) {
  const TestParameters parameters;
  for (int ranks : {1, 2}) {
    const absl::Status status = RankJob(ranks).Run([&](const RankContext& rank) {
      GateRank self(parameters, rank.op, rank.group, {});
      self.Update(1);
      const Parameter& cut = parameters.named("cut");
      Tensor kept = self.gate().Read(cut, *rank.op.stream, "layers.0.fc1").tensor().Slice(0, 1, 2);
      EXPECT_EQ(self.gate().CheckNoLeases().message(),
                "parameter cut cannot be updated: layers.0.fc1 still holds a tensor of it from "
                "before the optimizer step");
      kept = Tensor();
      EXPECT_TRUE(self.gate().CheckNoLeases().ok());
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(ParamGate, ALeaseOfAFrozenParameterMayBeKept) {
  const TestParameters parameters;
  const absl::Status status = RankJob(1).Run([&](const RankContext& rank) {
    GateRank self(parameters, rank.op, rank.group, {});
    const ParamLease kept = self.gate().Read(parameters.named("frozen"), *rank.op.stream, "layer");
    return self.gate().CheckNoLeases();
  });
  EXPECT_TRUE(status.ok()) << status;
}

// A group whose gathers end when the test says so. A wait for one that has not ended ends it, and
// is counted; callbacks are run by the test.
class ManualGroup final : public comm::ProcessGroup {
 public:
  class ManualWork final : public comm::Work::State {
   public:
    explicit ManualWork(int* waits) : waits_(waits) {}
    bool Done() const override { return done_; }
    void Wait(Stream&) override { Synchronize(); }
    void Synchronize() override {
      *waits_ += done_ ? 0 : 1;
      done_ = true;
    }
    void OnDone(std::function<void(const absl::Status&)> callback) override {
      callback_ = std::move(callback);
    }
    void End() { done_ = true; }
    void CallBack() { std::exchange(callback_, nullptr)(absl::OkStatus()); }

   private:
    int* const waits_;
    bool done_ = false;
    std::function<void(const absl::Status&)> callback_;
  };

  explicit ManualGroup(int size) : size_(size) {}
  const std::string& name() const override { return name_; }
  int rank() const override { return 0; }
  int size() const override { return size_; }
  comm::Arithmetic arithmetic() const override { return comm::Arithmetic::kOrdered; }
  comm::Work AllGather(const Tensor&, const Tensor&) override {
    works.push_back(std::make_shared<ManualWork>(&waits));
    return comm::Work(works.back());
  }
  comm::Work AllReduce(const Tensor&, comm::ReduceOp) override { return {}; }
  comm::Work ReduceScatter(const Tensor&, const Tensor&, comm::ReduceOp) override { return {}; }
  comm::Work Broadcast(const Tensor&, int) override { return {}; }
  comm::Work Send(const Tensor&, int) override { return {}; }
  comm::Work Recv(const Tensor&, int) override { return {}; }
  comm::Work Barrier() override { return {}; }
  void Abort(const absl::Status&) override {}

  std::vector<std::shared_ptr<ManualWork>> works;  // of the gathers, as issued
  int waits = 0;                                   // for gathers that had not ended

 private:
  const std::string name_ = "dp";
  const int size_;
};

class ManualGateTest : public testing::Test {
 protected:
  std::unique_ptr<GateRank> MakeRank(const ParamGate::Options& options) {
    return std::make_unique<GateRank>(parameters_, cpu_.op(), group_, options);
  }
  Tensor Read(GateRank& rank, const char* name) {
    return rank.gate().Read(parameters_.named(name), *cpu_.op().stream, name).tensor();
  }

  const TestParameters parameters_;
  TestDevice cpu_{DeviceKind::kCpu};
  ManualGroup group_{2};
};

// A reader returns as soon as the gather has ended. Its completion may be called back much later,
// by a thread that was held up, and must not be taken for that of the next version.
TEST_F(ManualGateTest, ALateCallbackDoesNotEndTheNextGather) {
  const auto rank = MakeRank({});
  rank->Update(1);
  for (const auto& work : group_.works) work->End();
  for (const Parameter* parameter : parameters_.order()) Read(*rank, parameter->name().c_str());
  EXPECT_EQ(group_.waits, 0);
  rank->Update(2);
  const size_t buckets = rank->plan().buckets().size();
  ASSERT_EQ(group_.works.size(), 2 * buckets);
  for (size_t b = 0; b < buckets; ++b) group_.works[b]->CallBack();
  Read(*rank, "first");
  EXPECT_EQ(group_.waits, 1) << "the read saw the weights of the step before";
}

TEST_F(ManualGateTest, TheWindowFillsAtPublicationsAndGoesOnAtCompletions) {
  ParamGate::Options options;
  options.window_bytes = 4096;
  const auto rank = MakeRank(options);
  rank->Update(1);
  const auto buckets = rank->plan().buckets();
  size_t ended = 0;
  while (ended < buckets.size()) {
    int64_t in_flight = 0;
    for (size_t b = ended; b < group_.works.size(); ++b) in_flight += buckets[b].bytes();
    EXPECT_TRUE(in_flight <= options.window_bytes || group_.works.size() == ended + 1);
    if (group_.works.size() < buckets.size()) {
      EXPECT_GT(in_flight + buckets[group_.works.size()].bytes(), options.window_bytes)
          << "there was room for the next gather";
    }
    group_.works[ended]->End();
    group_.works[ended]->CallBack();
    ++ended;
  }
  EXPECT_EQ(group_.waits, 0);
}

TEST_F(ManualGateTest, AReaderAheadOfTheChainAdvancesItThroughAllBeforeAndIsAMiss) {
  ParamGate::Options options;
  options.window_bytes = 0;
  const auto rank = MakeRank(options);
  rank->Update(1);
  EXPECT_TRUE(group_.works.empty());
  Read(*rank, "bias");
  const int bucket = rank->plan().BucketsOf(rank->plan().IndexOf(parameters_.named("bias")))[0];
  ASSERT_GT(bucket, 0);
  EXPECT_EQ(group_.works.size(), static_cast<size_t>(bucket + 1));
  const TransferRecord record = rank->gate().log().records()[bucket];
  EXPECT_EQ(record.waits, 1);
  EXPECT_EQ(record.misses, 1);
  EXPECT_EQ(record.transfers, 1);
  EXPECT_EQ(record.first_reader, "bias");
  EXPECT_EQ(record.bytes, rank->plan().buckets()[bucket].bytes());
  EXPECT_EQ(rank->gate().log().records()[0].transfers, 0) << "it is still in flight";
  Read(*rank, "first");
  EXPECT_EQ(rank->gate().log().records()[0].waits, 1);
  EXPECT_EQ(rank->gate().log().records()[0].misses, 0) << "the chain had passed it";
  rank->gate().log().ResetRecords();
  EXPECT_EQ(rank->gate().log().records()[bucket].waits, 0);
  EXPECT_EQ(rank->gate().log().records()[bucket].bytes, record.bytes);
}

TEST_F(ManualGateTest, WhatNobodyReadIsStartedWhenTheReadsHaveEnded) {
  ParamGate::Options options;
  options.window_bytes = 0;
  const auto rank = MakeRank(options);
  rank->gate().EndReads();
  EXPECT_TRUE(group_.works.empty()) << "nothing was updated";
  rank->Update(1);
  Read(*rank, "first");
  EXPECT_LT(group_.works.size(), rank->plan().buckets().size());
  rank->gate().EndReads();
  EXPECT_EQ(group_.works.size(), rank->plan().buckets().size());
}

// What recompute does: reads in the backward pass what the forward pass has read.
TEST_F(ManualGateTest, WhatIsReadAgainNeitherWaitsNorAdvancesTheChain) {
  ParamGate::Options options;
  options.window_bytes = 0;
  const auto rank = MakeRank(options);
  const auto order = parameters_.order();
  for (int step = 1; step <= 2; ++step) {
    rank->Update(step);
    const size_t before = group_.works.size();
    const size_t half = order.size() / 2;
    for (size_t i = 0; i < half; ++i) Read(*rank, order[i]->name().c_str());
    const size_t reached = group_.works.size();
    ASSERT_LT(reached - before, rank->plan().buckets().size()) << "the chain has not ended";
    const int waits = group_.waits;
    for (size_t i = half; i-- > 0;) Read(*rank, order[i]->name().c_str());
    EXPECT_EQ(group_.works.size(), reached);
    EXPECT_EQ(group_.waits, waits);
    for (const Parameter* parameter : order) Read(*rank, parameter->name().c_str());
    EXPECT_EQ(group_.works.size() - before, rank->plan().buckets().size());
  }
}

TEST_F(ManualGateTest, FinishEndsAllGathersWhereTheyDoNotOverlap) {
  ParamGate::Options options;
  options.overlap = false;
  const auto rank = MakeRank(options);
  rank->Update(1);
  EXPECT_EQ(group_.works.size(), rank->plan().buckets().size());
  const int waits = group_.waits;
  for (const Parameter* parameter : parameters_.order()) Read(*rank, parameter->name().c_str());
  EXPECT_EQ(group_.waits, waits);
}

TEST_F(ManualGateTest, PoisonIsAllButTheOwnShardFromTheAcceptanceOn) {
  ParamGate::Options options;
  options.poison = true;
  const auto rank = MakeRank(options);
  const Tensor kept = Read(*rank, "first");
  const std::vector<double> before = ValuesOf(kept);
  rank->gate().Accept(0, *cpu_.op().stream);
  const std::vector<double> after = ValuesOf(kept);
  const int64_t shard_numel = rank->writer().shard_numel(0);
  for (int64_t i = 0; i < kept.numel(); ++i) {
    if (i < shard_numel) {
      EXPECT_EQ(after[i], before[i]) << i;
    } else {
      EXPECT_TRUE(std::isnan(after[i])) << i;
    }
  }
}

TEST_F(ManualGateTest, AReadWhileTheOptimizerUpdatesIsRefused) {
  const auto rank = MakeRank({});
  rank->gate().Accept(0, *cpu_.op().stream);
  EXPECT_DEATH(Read(*rank, "first"), "read while the optimizer updates it");
}

TEST_F(ManualGateTest, AGateThatEndsWaitsForWhatIsInFlight) {
  auto rank = MakeRank({});
  rank->Update(1);
  rank = nullptr;
  EXPECT_EQ(group_.waits, static_cast<int>(group_.works.size()));
  for (const auto& work : group_.works) work->CallBack();  // late, and of no gate
}

TEST_F(ManualGateTest, OnDemandAGateThatEndsWaitsForWhatIsInFlightAndIssuesNothing) {
  ParamGate::Options options;
  options.window_bytes = 0;
  for (bool reads_ended : {false, true}) {
    group_.works.clear();
    group_.waits = 0;
    auto rank = MakeRank(options);
    rank->Update(1);
    if (reads_ended) rank->gate().EndReads();
    const size_t issued = group_.works.size();
    EXPECT_EQ(issued > 0, reads_ended);
    rank = nullptr;
    EXPECT_EQ(group_.works.size(), issued);
    EXPECT_EQ(group_.waits, static_cast<int>(issued));
  }
}

TEST_F(ManualGateTest, TheGroupHasAsManyRanksAsThePlanHasShards) {
  const BucketPlan plan = parameters_.Plan(3);
  BucketBuffer buffer(plan, parameters_.frozen(), cpu_.op());
  EXPECT_DEATH(ParamGate(buffer, group_, {}, [] { return 0.0; }), "ranks that gather, and shards");
}

}  // namespace
}  // namespace forerun
