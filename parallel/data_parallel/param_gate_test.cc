// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/param_gate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/autograd/testing/test_device.h"
#include "core/random/random.h"
#include "gtest/gtest.h"
#include "parallel/comm/process_group.h"
#include "parallel/comm/work.h"
#include "parallel/data_parallel/testing/rank_job.h"
#include "parallel/data_parallel/testing/test_parameters.h"

namespace forerun {
namespace {

double NoClock() { return 0.0; }

// The value of an element after the update of `step`: exact in bf16, and another one every step.
float ValueAt(int step, int bucket, int64_t i) {
  return static_cast<float>((37 * step + 11 * bucket + i) % 251);
}

// One rank's buffer behind its gate, and an optimizer that writes ValueAt.
class GateRank {
 public:
  GateRank(const TestParameters& parameters, const OpContext& op, comm::ProcessGroup& group,
           const ParamGate::Options& options)
      : plan_(parameters.Plan(group.size())),
        op_(op),
        buffer_(plan_, parameters.frozen(), op),
        writer_(buffer_, group.rank()) {
    parameters.Initialise(buffer_);
    gate_ = std::make_unique<ParamGate>(buffer_, group, options, NoClock);
  }

  ParamGate& gate() { return *gate_; }
  const BucketPlan& plan() const { return plan_; }
  ShardWriter& writer() { return writer_; }
  int buckets() const { return static_cast<int>(plan_.buckets().size()); }

  void Update(int step) {
    for (int b = 0; b < buckets(); ++b) {
      gate_->Accept(b, *op_.stream);
      Write(b, step);
      gate_->Publish(b);
    }
    gate_->Finish(*op_.stream);
  }
  void Write(int bucket, int step) {
    const Tensor shard = writer_.Params(bucket);
    VisitFloating(shard.dtype(), [&](auto element) {
      using T = decltype(element);
      for (int64_t i = 0; i < shard.numel(); ++i) {
        shard.mutable_data<T>()[i] = T(ValueAt(step, bucket, writer_.shard() * shard.numel() + i));
      }
    });
  }

  // Reads a parameter and compares it with what step's update must have left.
  void ExpectValue(const Parameter& parameter, int step) {
    const ParamLease lease = gate_->Read(parameter, *op_.stream, "test");
    const std::vector<double> values = ValuesOf(lease.tensor());
    const int index = plan_.IndexOf(parameter);
    for (int bucket : plan_.BucketsOf(index)) {
      for (const BucketPiece& piece : plan_.buckets()[bucket].pieces) {
        if (piece.parameter != &parameter) continue;
        for (int64_t i = 0; i < piece.numel; ++i) {
          ASSERT_EQ(values[piece.parameter_begin + i],
                    ValueAt(step, bucket, piece.bucket_begin + i))
              << parameter.name() << " at " << piece.parameter_begin + i << " in step " << step;
        }
      }
    }
  }

 private:
  const BucketPlan plan_;
  const OpContext& op_;
  BucketBuffer buffer_;
  ShardWriter writer_;
  std::unique_ptr<ParamGate> gate_;
};

// Fails the test where two calls to a group overlap.
class OneCallAtATime final : public comm::ProcessGroup {
 public:
  explicit OneCallAtATime(comm::ProcessGroup& group) : group_(group) {}

  const std::string& name() const override { return group_.name(); }
  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  comm::Arithmetic arithmetic() const override { return group_.arithmetic(); }
  comm::Work AllReduce(const Tensor& tensor, comm::ReduceOp op) override {
    return group_.AllReduce(tensor, op);
  }
  comm::Work AllGather(const Tensor& input, const Tensor& output) override {
    EXPECT_FALSE(inside_.exchange(true)) << "two calls at once";
    comm::Work work = group_.AllGather(input, output);
    inside_ = false;
    return work;
  }
  comm::Work ReduceScatter(const Tensor& input, const Tensor& output, comm::ReduceOp op) override {
    return group_.ReduceScatter(input, output, op);
  }
  comm::Work Broadcast(const Tensor& tensor, int root) override {
    return group_.Broadcast(tensor, root);
  }
  comm::Work Send(const Tensor& tensor, int peer) override { return group_.Send(tensor, peer); }
  comm::Work Recv(const Tensor& tensor, int peer) override { return group_.Recv(tensor, peer); }
  comm::Work Barrier() override { return group_.Barrier(); }
  void Abort(const absl::Status& status) override { group_.Abort(status); }

 private:
  comm::ProcessGroup& group_;
  std::atomic<bool> inside_{false};
};

// How a world of ranks gathers.
struct GateCase {
  const char* name;
  bool overlap;
  int64_t window_bytes;
  int64_t inline_bytes;  // of the hub: 0 moves all data on progress threads
};
std::ostream& operator<<(std::ostream& out, const GateCase& gate_case) {
  return out << gate_case.name;
}

class ParamGateWorld : public testing::TestWithParam<GateCase> {
 protected:
  ParamGate::Options Options() const {
    return {GetParam().overlap, GetParam().window_bytes, /*poison=*/true};
  }
  RankJob Job(int ranks) const {
    comm::LocalHub::Options hub;
    hub.inline_bytes = GetParam().inline_bytes;
    return RankJob(ranks, hub);
  }

  const TestParameters parameters_{/*mixed=*/true};
};

// Each rank reads other parameters, in another order, and in some steps none.
TEST_P(ParamGateWorld, ReadsInAnyOrderSeeTheCurrentValuesAndRanksIssueOneSequence) {
  constexpr int kSteps = 9;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    std::vector<std::vector<int>> issued(ranks);
    const absl::Status status = Job(ranks).Run([&](const RankContext& rank) {
      OneCallAtATime group(rank.group);
      GateRank self(parameters_, rank.op, group, Options());
      const auto order = parameters_.order();
      for (int step = 1; step <= kSteps; ++step) {
        self.Update(step);
        const RandomKey key = RandomKey::Root(rank.rank).Fold(step);
        const size_t reads = step == kSteps ? order.size() : (step + rank.rank) % 3 * 2;
        for (size_t i = 0; i < reads; ++i) {
          self.ExpectValue(*order[PermutationAt(key, order.size(), i)], step);
        }
      }
      for (int b = 0; b < self.buckets(); ++b) EXPECT_EQ(self.gate().version(b), kSteps);
      issued[rank.rank] = BucketsOf(self.gate().log().TakeAllEvents());
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
    const size_t buckets = parameters_.Plan(ranks).buckets().size();
    std::vector<int> expected;
    for (size_t i = 0; i < kSteps * buckets; ++i) expected.push_back(static_cast<int>(i % buckets));
    for (int r = 0; r < ranks; ++r) EXPECT_EQ(issued[r], expected) << "rank " << r;
  }
}

TEST_P(ParamGateWorld, ARankThatEndsEarlyStillBringsItsPart) {
  if (GetParam().window_bytes == 0) return;  // on demand all ranks have to read
  const absl::Status status = Job(3).Run([&](const RankContext& rank) {
    GateRank self(parameters_, rank.op, rank.group, Options());
    self.Update(1);
    if (rank.rank == 1) return absl::OkStatus();
    for (const Parameter* parameter : parameters_.order()) self.ExpectValue(*parameter, 1);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

// Where a rank breaks off in its third step.
enum class BreakOff { kBeforeTheUpdate, kInsideTheUpdate, kAfterTheUpdate };

TEST_P(ParamGateWorld, TheErrorOfOneRankEndsTheWaitsOfAll) {
  for (BreakOff where :
       {BreakOff::kBeforeTheUpdate, BreakOff::kInsideTheUpdate, BreakOff::kAfterTheUpdate}) {
    std::vector<std::string> errors(3);
    const absl::Status status = Job(3).Run([&](const RankContext& rank) -> absl::Status {
      GateRank self(parameters_, rank.op, rank.group, Options());
      const absl::Status broken = absl::DataLossError("no more samples");
      try {
        for (int step = 1; step <= 5; ++step) {
          const bool breaks = rank.rank == 1 && step == 3;
          if (breaks && where == BreakOff::kBeforeTheUpdate) return broken;
          if (breaks && where == BreakOff::kInsideTheUpdate) {
            self.gate().Accept(0, *rank.op.stream);
            return broken;
          }
          self.Update(step);
          if (breaks) return broken;
          for (const Parameter* parameter : parameters_.order()) {
            self.ExpectValue(*parameter, step);
          }
        }
      } catch (const comm::GroupError& error) {
        errors[rank.rank] = error.what();
        throw;
      }
      return absl::OkStatus();
    });
    EXPECT_EQ(status, absl::DataLossError("no more samples"));
    EXPECT_EQ(errors, (std::vector<std::string>{"no more samples", "", "no more samples"}));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, ParamGateWorld,
    testing::Values(GateCase{"AfterTheStep", false, 1 << 20, 64 << 10},
                    GateCase{"AfterTheStepOnProgressThreads", false, 1 << 20, 0},
                    GateCase{"OnDemand", true, 0, 0}, GateCase{"OneInFlight", true, 1, 64 << 10},
                    GateCase{"OneInFlightOnProgressThreads", true, 1, 0},
                    GateCase{"SmallWindow", true, 6000, 0},
                    GateCase{"WholeModel", true, 1 << 30, 64 << 10},
                    GateCase{"WholeModelOnProgressThreads", true, 1 << 30, 0}),
    [](const auto& info) { return std::string(info.param.name); });

// The others wait for it elsewhere, and read nothing.
TEST(ParamGate, OnDemandARankThatBreaksOffAfterItsUpdateEndsAtOnce) {
  const TestParameters parameters;
  comm::LocalHub::Options hub;
  hub.deadline = std::chrono::minutes(1);
  const absl::Status status = RankJob(2, hub).Run([&](const RankContext& rank) -> absl::Status {
    ParamGate::Options options;
    options.window_bytes = 0;
    GateRank self(parameters, rank.op, rank.group, options);
    self.Update(1);
    if (rank.rank == 1) return absl::DataLossError("no more samples");
    rank.factory.Create("pipeline", {0, 1})->Recv(rank.op.Empty({1}, DType::kF32), 1).Synchronize();
    return absl::OkStatus();
  });
  EXPECT_EQ(status, absl::DataLossError("no more samples"));
}

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

TEST_F(ManualGateTest, TheGroupHasAsManyRanksAsThePlanHasShards) {
  const BucketPlan plan = parameters_.Plan(3);
  BucketBuffer buffer(plan, parameters_.frozen(), cpu_.op());
  EXPECT_DEATH(ParamGate(buffer, group_, {}, NoClock), "ranks that gather, and shards");
}

}  // namespace
}  // namespace forerun
