// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/bucket_cuts.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/random/random.h"
#include "gtest/gtest.h"
#include "parallel/data_parallel/testing/random_model.h"

namespace forerun {
namespace {

struct Outcome {
  double exposed = 0.0;
  double reductions = 0.0;  // sum of their times
};

Outcome OutcomeOf(const std::vector<const Parameter*>& order, const ForwardTimeline& timeline,
                  const Costs& costs, const BucketPlanOptions& options) {
  const Prediction prediction = Predict(BucketPlan(order, options), timeline, costs);
  Outcome outcome{prediction.exposed()};
  for (const BucketPrediction& bucket : prediction.buckets) outcome.reductions += bucket.reduce;
  return outcome;
}

bool WithinLimit(const BucketPlan& plan, int64_t limit) {
  const auto buckets = plan.buckets();
  return std::all_of(buckets.begin(), buckets.end(), [&](const Bucket& bucket) {
    return bucket.pieces.size() == 1 || bucket.bytes() <= limit;
  });
}

// Of all cuts, each parameter that lies alone being cut off: among those within 0.1 % of the least
// exposed time that with the shortest reductions.
Outcome BestOfAll(const std::vector<const Parameter*>& order, const ForwardTimeline& timeline,
                  const Costs& costs, BucketPlanOptions options) {
  const auto count = static_cast<int>(order.size());
  std::vector<Outcome> outcomes;
  for (int mask = 0; mask < 1 << (count - 1); ++mask) {
    options.cuts.clear();
    bool forced = true;
    for (int place = 1; place < count; ++place) {
      const bool cut = (mask >> (place - 1)) & 1;
      const bool must = options.LiesAlone(*order[place]) || options.LiesAlone(*order[place - 1]);
      forced = forced && (cut || !must);
      if (cut) options.cuts.push_back(place);
    }
    if (!forced || !WithinLimit(BucketPlan(order, options), options.max_bucket_bytes)) continue;
    outcomes.push_back(OutcomeOf(order, timeline, costs, options));
  }
  double least = outcomes[0].exposed;
  for (const Outcome& outcome : outcomes) least = std::min(least, outcome.exposed);
  Outcome best{0.0, 1e300};
  for (const Outcome& outcome : outcomes) {
    if (outcome.exposed <= least * 1.001 && outcome.reductions < best.reductions) best = outcome;
  }
  return best;
}

Costs RandomCosts(uint64_t seed) {
  const RandomKey key = RandomKey::Root(seed).Fold("costs");
  Costs costs;
  costs.gather = {UniformAt(key, 0) * 2e-6, UniformAt(key, 1) * 1e-9};
  costs.reduce = {UniformAt(key, 2) * 2e-6, UniformAt(key, 3) * 1e-9};
  costs.update = UniformAt(key, 4) < 0.5f ? 0.0 : UniformAt(key, 5) * 2e-9;
  return costs;
}

TEST(BucketCuts, NoOtherCutsAreBetter) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const RandomKey key = RandomKey::Root(seed).Fold("case");
    const RandomModel model(seed, 1 + static_cast<int>(UniformAt(key, 0) * 9), 5000);
    const ForwardTimeline timeline =
        model.Timeline(1 + static_cast<int64_t>(UniformAt(key, 1) * 20000));
    const Costs costs = RandomCosts(seed);
    BucketPlanOptions options;
    options.shards = 1 + static_cast<int>(UniformAt(key, 2) * 4);
    options.max_bucket_bytes = 4096 + static_cast<int64_t>(UniformAt(key, 3) * 30000);
    const Outcome planned = OutcomeOf(model.order(), timeline, costs,
                                      WithBestCuts(model.order(), timeline, costs, options));
    const Outcome best = BestOfAll(model.order(), timeline, costs, options);
    EXPECT_NEAR(planned.reductions, best.reductions, 1e-9 * best.reductions) << "seed " << seed;
    EXPECT_LE(planned.exposed, 1.001 * best.exposed) << "seed " << seed;
  }
}

// Layers of equal size and compute; some may be of another dtype or size.
class LayeredTest : public testing::Test {
 protected:
  void Add(int64_t numel, DType dtype, double compute) {
    ParameterSpec spec;
    spec.name = "p" + std::to_string(owned_.size());
    spec.global_shape = {numel};
    spec.box = Box::Whole(spec.global_shape);
    spec.dtype = dtype;
    owned_.push_back(std::make_unique<Parameter>(static_cast<int>(owned_.size()), std::move(spec)));
    order_.push_back(owned_.back().get());
    timeline_.before.push_back(timeline_.total);
    timeline_.total += compute;
  }
  BucketPlan Best(const Costs& costs) const {
    BucketPlanOptions options;
    options.shards = 2;
    return BucketPlan(order_, WithBestCuts(order_, timeline_, costs, options));
  }
  int ExposedGathers(const BucketPlan& plan, const Costs& costs) const {
    const Prediction prediction = Predict(plan, timeline_, costs);
    return static_cast<int>(std::count_if(prediction.buckets.begin(), prediction.buckets.end(),
                                          [](const auto& b) { return b.waited > 1e-12; }));
  }

  static constexpr int64_t kNumel = 1 << 20;
  std::vector<std::unique_ptr<Parameter>> owned_;
  std::vector<const Parameter*> order_;
  ForwardTimeline timeline_;
};

TEST_F(LayeredTest, OverASlowLinkTheFirstBucketIsSmallerThanTheMean) {
  constexpr double kByte = 1e-9;
  for (int i = 0; i < 64; ++i) Add(kNumel, DType::kBF16, 3 * kNumel * kByte);
  Costs costs;
  costs.gather = costs.reduce = {2e-4, kByte};  // gathering takes 70 % of computing
  const BucketPlan plan = Best(costs);
  const auto buckets = plan.buckets();
  ASSERT_GT(buckets.size(), 2u);
  EXPECT_LT(buckets[0].numel, 64 * kNumel / static_cast<int64_t>(buckets.size()));
}

TEST_F(LayeredTest, AHigherLatencyMakesFewerBuckets) {
  for (int i = 0; i < 32; ++i) Add(kNumel, DType::kBF16, 3e-3);
  Costs low, high;
  low.gather = low.reduce = {1e-3, 1e-9};
  high.gather = high.reduce = {1e-1, 1e-9};
  EXPECT_LT(Best(high).buckets().size(), Best(low).buckets().size());
}

TEST_F(LayeredTest, OneRouterInFp32AmongBf16WeightsExposesNoFurtherGather) {
  constexpr double kByte = 1e-9;
  Costs costs;
  costs.gather = costs.reduce = {1e-6, kByte};
  for (int i = 0; i < 8; ++i) Add(kNumel, DType::kBF16, 2.1 * kNumel * kByte);
  const int without = ExposedGathers(Best(costs), costs);
  EXPECT_EQ(without, 1);
  owned_.clear();
  order_.clear();
  timeline_ = {};
  for (int i = 0; i < 8; ++i) {
    Add(kNumel, DType::kBF16, 2.1 * kNumel * kByte);
    if (i == 3) Add(1024, DType::kF32, 1e-6);
  }
  EXPECT_EQ(ExposedGathers(Best(costs), costs), without);
}

TEST_F(LayeredTest, UnderASlowUpdateALargeParameterIsCutIntoSmallPieces) {
  Add(16 * kNumel, DType::kF32, 1e-3);  // 64 MiB
  Add(1024, DType::kF32, 1e-3);
  Costs costs;
  costs.gather = costs.reduce = {1e-5, 1e-9};
  const size_t whole = Best(costs).buckets().size();
  EXPECT_LE(whole, 2u);
  costs.update = 1e-8;
  EXPECT_GT(Best(costs).buckets().size(), 8u);
}

// 2,004 parameters, most of them small.
TEST_F(LayeredTest, ALargeModelIsCutAboutAsWellAsItsLayers) {
  constexpr double kSeconds = 3e-9;  // of compute an element
  for (int layer = 0; layer < 167; ++layer) {
    for (int64_t numel :
         {1024, 1024, 3 << 20, 3072, 1 << 20, 1024, 1024, 1024, 4 << 20, 4096, 4 << 20, 1024}) {
      Add(numel, DType::kBF16, kSeconds * static_cast<double>(numel));
    }
  }
  Costs costs;
  costs.gather = costs.reduce = {1e-4, 1e-9};
  const double planned = Predict(Best(costs), timeline_, costs).exposed();
  BucketPlanOptions layers;
  layers.shards = 2;
  for (int cut = 12; cut < 2004; cut += 12) layers.cuts.push_back(cut);
  EXPECT_LT(planned, 0.5 * OutcomeOf(order_, timeline_, costs, layers).exposed);
}

TEST(BucketCuts, APlanForARandomLargeModelBeatsEqualParts) {
  for (int count : {kMostPlaces, 2000}) {
    const RandomModel model(1, count, 200000, /*shared=*/0.0);
    const ForwardTimeline timeline = model.Timeline(1000000);
    Costs costs;
    costs.gather = costs.reduce = {1e-5, 2e-9};
    costs.update = 1e-10;
    BucketPlanOptions options;
    options.shards = 4;
    const double planned = OutcomeOf(model.order(), timeline, costs,
                                     WithBestCuts(model.order(), timeline, costs, options))
                               .exposed;
    for (int part : {1, 2, 4, 8, 16, 32, 64}) {
      options.cuts.clear();
      for (int cut = part; cut < count; cut += part) options.cuts.push_back(cut);
      EXPECT_LE(planned, OutcomeOf(model.order(), timeline, costs, options).exposed) << part;
    }
  }
}

TEST_F(LayeredTest, NoParametersGiveNoBuckets) {
  EXPECT_TRUE(Best(Costs::Nominal()).buckets().empty());
}

}  // namespace
}  // namespace forerun
