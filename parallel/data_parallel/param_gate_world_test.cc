// SPDX-License-Identifier: Apache-2.0
// ParamGate among the gates of other ranks, over local groups.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/autograd/testing/test_device.h"
#include "core/random/random.h"
#include "gtest/gtest.h"
#include "parallel/comm/process_group.h"
#include "parallel/comm/work.h"
#include "parallel/data_parallel/param_gate.h"
#include "parallel/data_parallel/testing/gate_rank.h"
#include "parallel/data_parallel/testing/rank_job.h"
#include "parallel/data_parallel/testing/test_parameters.h"

namespace forerun {
namespace {

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

}  // namespace
}  // namespace forerun
