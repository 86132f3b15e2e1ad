// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/cost_model.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/random/random.h"
#include "gtest/gtest.h"
#include "parallel/comm/link/link.h"
#include "parallel/comm/link/virtual_clock.h"
#include "parallel/comm/process_group.h"
#include "parallel/data_parallel/grad_reduce.h"
#include "parallel/data_parallel/param_sync.h"
#include "parallel/data_parallel/testing/random_model.h"

namespace forerun {
namespace {

using comm::Clock;

constexpr double kNanosecond = 1e-9;
Clock::Time TimeOf(double seconds) {
  return Clock::Time(static_cast<int64_t>(seconds / kNanosecond + 0.5));
}
double SecondsOf(Clock::Time time) { return static_cast<double>(time.count()) * kNanosecond; }

// Prices that are whole numbers of nanoseconds, as virtual time is, and the link they describe.
struct RandomPrices {
  RandomPrices(uint64_t seed, int shards) : shards(shards) {
    const RandomKey key = RandomKey::Root(seed).Fold("prices");
    latency = Clock::Time(static_cast<int64_t>(UniformAt(key, 0) * 3000));
    const auto byte = 1 + static_cast<int64_t>(UniformAt(key, 1) * 3);  // nanoseconds
    bytes_per_second = 1.0 / (static_cast<double>(byte) * kNanosecond);
    costs.gather = {SecondsOf(latency),
                    static_cast<double>(byte) * kNanosecond * (shards - 1) / shards};
    costs.reduce = costs.gather;
    costs.update =
        static_cast<double>(static_cast<int64_t>(UniformAt(key, 2) * 4) * shards) * kNanosecond;
  }
  int shards;
  Clock::Time latency;
  double bytes_per_second;
  Costs costs;
};

// One step of the product's own state machines over a link in virtual time.
class Simulation {
 public:
  Simulation(const BucketPlan& plan, const ForwardTimeline& timeline, const RandomPrices& prices)
      : plan_(plan),
        timeline_(timeline),
        prices_(prices),
        link_({prices.latency, prices.bytes_per_second}, clock_) {}

  // Time that readers were blocked.
  double Stall(int64_t window_bytes) {
    ParamSync sync(Gathers(window_bytes));
    const std::function<void(const std::vector<int>&)> start = [&](const std::vector<int>& issued) {
      for (int b : issued) {
        Carry(comm::OpKind::kAllGather, plan_.buckets()[b].bytes(),
              [&, b] { start(sync.OnGathered(b)); });
      }
    };
    for (size_t b = 0; b < plan_.buckets().size(); ++b) {
      sync.OnAccepted(static_cast<int>(b));
      clock_.AdvanceBy(UpdateTime(plan_.buckets()[b]));
      start(sync.OnPublished(static_cast<int>(b)));
    }
    Clock::Time compute = clock_.Now(), waited{0};
    double done = 0.0;
    for (size_t p = 0; p < timeline_.before.size(); ++p) {
      compute += TimeOf(timeline_.before[p] - done);
      done = timeline_.before[p];
      clock_.AdvanceTo(compute);
      for (int b : plan_.BucketsOf(static_cast<int>(p))) {
        if (!sync.Current(b)) start(sync.OnWanted(b));
        while (!sync.Current(b)) EXPECT_TRUE(clock_.Advance());
      }
      waited += clock_.Now() - compute;
      compute = clock_.Now();
    }
    clock_.AdvanceToTheEnd();
    return SecondsOf(waited);
  }

  // Time from the end of the backward pass to the last reduction's.
  double Tail() {
    GradReduce reduce(Reductions());
    const Clock::Time begin = clock_.Now();
    Clock::Time last{0};
    const auto start = [&](const GradReduce::Commands& commands) {
      for (int b : commands.reduce) {
        const int64_t bytes = plan_.buckets()[b].numel * SizeOf(DType::kF32);
        Carry(comm::OpKind::kReduceScatter, bytes, [&] { last = clock_.Now(); });
      }
    };
    reduce.BeginStep(1);
    std::vector<int> once(plan_.parameters().size());
    for (size_t p = 0; p < once.size(); ++p) once[p] = static_cast<int>(p);
    start(reduce.OnAnnounced(0, once));
    for (size_t p = once.size(); p-- > 0;) {
      clock_.AdvanceTo(begin +
                       TimeOf(kBackwardOverForward * (timeline_.total - timeline_.before[p])));
      start(reduce.OnContributed(static_cast<int>(p)));
    }
    clock_.AdvanceToTheEnd();
    const Clock::Time end = begin + TimeOf(kBackwardOverForward * timeline_.total);
    return SecondsOf(std::max(Clock::Time(0), last - end));
  }

 private:
  void Carry(comm::OpKind kind, int64_t bytes, std::function<void()> ended) {
    const auto occupancy = link_.Occupy(comm::WireBytes(kind, bytes, prices_.shards));
    clock_.CallAt(occupancy.end, std::move(ended));
  }
  Clock::Time UpdateTime(const Bucket& bucket) const {
    int64_t elements = 0;
    for (const BucketPiece& piece : bucket.pieces) elements += piece.numel;
    return TimeOf(prices_.costs.update * static_cast<double>(elements) / prices_.shards);
  }
  GatherPlan Gathers(int64_t window_bytes) const {
    GatherPlan gathers;
    for (size_t b = 0; b < plan_.buckets().size(); ++b) {
      gathers.order.push_back(static_cast<int>(b));
      gathers.bytes.push_back(plan_.buckets()[b].bytes());
    }
    gathers.window_bytes = window_bytes;
    return gathers;
  }
  ReducePlan Reductions() const {
    ReducePlan reductions;
    reductions.chunk_of_parameter.assign(plan_.parameters().size(), 0);
    for (size_t b = 0; b < plan_.buckets().size(); ++b) {
      reductions.parameters_of_bucket.emplace_back();
      for (const BucketPiece& piece : plan_.buckets()[b].pieces) {
        reductions.parameters_of_bucket.back().push_back(plan_.IndexOf(*piece.parameter));
      }
      reductions.order.insert(reductions.order.begin(), static_cast<int>(b));
    }
    return reductions;
  }

  const BucketPlan& plan_;
  const ForwardTimeline& timeline_;
  const RandomPrices& prices_;
  comm::VirtualClock clock_;
  comm::Link link_;
};

TEST(CostModel, StallAndTailAreThoseOfTheStateMachinesInVirtualTime) {
  int stalled = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const RandomKey key = RandomKey::Root(seed).Fold("case");
    const RandomModel model(seed, 1 + static_cast<int>(UniformAt(key, 0) * 39), 2000);
    const ForwardTimeline timeline =
        model.Timeline(1 + static_cast<int64_t>(UniformAt(key, 1) * 20000));
    BucketPlanOptions options;
    options.shards = 1 + static_cast<int>(UniformAt(key, 2) * 8);
    options.cuts = model.Cuts(UniformAt(key, 3));
    options.max_bucket_bytes = 1024 + static_cast<int64_t>(UniformAt(key, 4) * 8192);
    const BucketPlan plan(model.order(), options);
    const RandomPrices prices(seed, options.shards);
    const Prediction prediction = Predict(plan, timeline, prices.costs);

    Simulation simulation(plan, timeline, prices);
    const auto window = 1 + static_cast<int64_t>(UniformAt(key, 5) * 65536);
    EXPECT_NEAR(simulation.Stall(window), prediction.stall, 1e-12) << "seed " << seed;
    EXPECT_NEAR(simulation.Tail(), prediction.tail, 1e-12) << "seed " << seed;
    if (prediction.stall > 0.0) ++stalled;
  }
  EXPECT_GT(stalled, 1000);
  EXPECT_LT(stalled, 2900);
}

class FourEqualBuckets : public testing::Test {
 protected:
  FourEqualBuckets() {
    for (int i = 0; i < 4; ++i) {
      ParameterSpec spec;
      spec.name = "p" + std::to_string(i);
      spec.global_shape = {1 << 20};
      spec.box = Box::Whole(spec.global_shape);
      owned_.push_back(std::make_unique<Parameter>(i, std::move(spec)));
      order_.push_back(owned_.back().get());
    }
    BucketPlanOptions options;
    options.bucket_numel = 1;
    plan_ = std::make_unique<BucketPlan>(order_, options);
    timeline_ = {{0.0, 1.0, 2.0, 3.0}, 4.0};
    costs_.gather = {0.25, 0.75 / (4 << 20)};  // one second each
    costs_.reduce = {1.0, 1.0 / (4 << 20)};    // two, as the backward pass of each
  }

  std::vector<std::unique_ptr<Parameter>> owned_;
  std::vector<const Parameter*> order_;
  std::unique_ptr<BucketPlan> plan_;
  ForwardTimeline timeline_;
  Costs costs_;
};

TEST_F(FourEqualBuckets, WhereGatheringTakesAsLongAsComputingOneGatherAndOneReductionAreExposed) {
  const Prediction prediction = Predict(*plan_, timeline_, costs_);
  EXPECT_DOUBLE_EQ(prediction.stall, 1.0);
  EXPECT_DOUBLE_EQ(prediction.tail, 2.0);
  for (int k = 0; k < 4; ++k) {
    const BucketPrediction& b = prediction.buckets[k];
    EXPECT_DOUBLE_EQ(b.gathered, k + 1.0);
    EXPECT_DOUBLE_EQ(b.wanted, k);
    EXPECT_DOUBLE_EQ(b.waited, k == 0 ? 1.0 : 0.0);
    EXPECT_DOUBLE_EQ(b.ready, 2.0 * (4 - k));
    EXPECT_DOUBLE_EQ(b.reduced, 2.0 * (4 - k) + 2.0);
  }
}

TEST_F(FourEqualBuckets, UnderAnUpdateOfThreeBucketsTheFirstGatherIsHidden) {
  costs_.update = 1.0 / (1 << 20);
  const Prediction prediction = Predict(*plan_, timeline_, costs_);
  EXPECT_DOUBLE_EQ(prediction.stall, 0.0);
  EXPECT_DOUBLE_EQ(prediction.buckets[0].updated, 1.0);
  EXPECT_DOUBLE_EQ(prediction.buckets[0].gathered, 2.0);
  EXPECT_DOUBLE_EQ(prediction.buckets[3].gathered, 5.0);
  EXPECT_DOUBLE_EQ(prediction.buckets[0].wanted, 4.0);
}

TEST_F(FourEqualBuckets,
       WhereCommunicationExceedsComputeTheStallIsTheDifferenceAndTheWaitsSumToIt) {
  costs_.gather = {0.0, 3.0 / (4 << 20)};
  const Prediction prediction = Predict(*plan_, timeline_, costs_);
  EXPECT_DOUBLE_EQ(prediction.stall, 4 * 3.0 - 3.0);
  double waited = 0.0;
  for (const BucketPrediction& b : prediction.buckets) waited += b.waited;
  EXPECT_DOUBLE_EQ(waited, prediction.stall);
}

TEST(Costs, EqualTextMeansEqualPrices) {
  Costs a = Costs::Nominal(), b = Costs::Nominal();
  EXPECT_EQ(a.ToString(), b.ToString());
  b.gather.alpha *= 1.0 + 1e-15;
  EXPECT_NE(a.ToString(), b.ToString());
}

}  // namespace
}  // namespace forerun
