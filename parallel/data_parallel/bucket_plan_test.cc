// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/bucket_plan.h"

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/random/random.h"
#include "gtest/gtest.h"
#include "parallel/data_parallel/testing/random_model.h"

namespace forerun {
namespace {

// Of 1 to 30 parameters.
RandomModel ModelOf(uint64_t seed) {
  return RandomModel(seed, 1 + static_cast<int>(UniformAt(RandomKey::Root(seed), 0) * 30), 5000);
}

BucketPlanOptions RandomOptions(uint64_t seed, const RandomModel& model) {
  const RandomKey key = RandomKey::Root(seed).Fold("options");
  BucketPlanOptions options;
  options.shards = 1 + static_cast<int>(UniformAt(key, 0) * 8);
  if (UniformAt(key, 1) < 0.7f) {
    options.bucket_numel = 1 + static_cast<int64_t>(UniformAt(key, 2) * 20000);
  } else {
    options.cuts = model.Cuts(0.3);
  }
  options.max_bucket_bytes = 2048 + static_cast<int64_t>(UniformAt(key, 3) * 20000);
  options.max_shared_bytes = 2048 + static_cast<int64_t>(UniformAt(key, 4) * 20000);
  return options;
}

void ExpectInvariants(const BucketPlan& plan, const std::vector<const Parameter*>& order,
                      const BucketPlanOptions& options) {
  std::vector<int64_t> placed(order.size(), 0);
  int last_first_use = -1;
  for (size_t b = 0; b < plan.buckets().size(); ++b) {
    const Bucket& bucket = plan.buckets()[b];
    ASSERT_FALSE(bucket.pieces.empty());
    EXPECT_EQ(bucket.numel % (options.shards * options.alignment), 0);
    EXPECT_GE(plan.IndexOf(*bucket.pieces[0].parameter), last_first_use);
    last_first_use = plan.IndexOf(*bucket.pieces[0].parameter);
    int64_t end = 0;
    for (const BucketPiece& piece : bucket.pieces) {
      const int index = plan.IndexOf(*piece.parameter);
      EXPECT_EQ(piece.parameter->dtype(), bucket.dtype);
      EXPECT_EQ(piece.bucket_begin % options.alignment, 0);
      EXPECT_GE(piece.bucket_begin, end) << "pieces overlap";
      end = piece.bucket_begin + piece.numel;
      EXPECT_EQ(piece.parameter_begin, placed[index]) << "pieces of a parameter are in order";
      placed[index] += piece.numel;
      if (piece.numel < piece.parameter->numel()) {
        EXPECT_FALSE(options.bucket_numel.has_value()) << "a size that was asked for cuts nothing";
        EXPECT_EQ(bucket.pieces.size(), 1u);
        if (placed[index] < piece.parameter->numel()) {
          EXPECT_EQ(piece.numel, bucket.numel);
        }
      }
      if (piece.parameter->sharing() != Sharing::kNone) {
        EXPECT_EQ(bucket.pieces.size(), 1u);
      }
    }
    EXPECT_LE(end, bucket.numel);
  }
  for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(placed[i], order[i]->numel());
}

TEST(BucketPlan, KeepsItsInvariantsForRandomModelsAndOptions) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const RandomModel model = ModelOf(seed);
    const BucketPlanOptions options = RandomOptions(seed, model);
    const BucketPlan plan(model.order(), options);
    ExpectInvariants(plan, model.order(), options);
    if (HasFailure()) FAIL() << "seed " << seed << "\n" << plan.ToString();
  }
}

TEST(BucketPlan, NoBucketReachesOverACut) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const RandomModel model = ModelOf(seed);
    const BucketPlanOptions options = RandomOptions(seed, model);
    const BucketPlan plan(model.order(), options);
    for (const Bucket& bucket : plan.buckets()) {
      const int first = plan.IndexOf(*bucket.pieces.front().parameter);
      const int last = plan.IndexOf(*bucket.pieces.back().parameter);
      for (int cut : options.cuts) EXPECT_FALSE(first < cut && cut <= last) << "seed " << seed;
    }
  }
}

TEST(BucketPlan, BetweenTwoCutsLiesOneBucketADtype) {
  const RandomModel model = ModelOf(5);
  const auto count = static_cast<int>(model.order().size());
  BucketPlanOptions options;
  options.cuts = {count / 2};
  std::set<std::pair<bool, DType>> expected;  // half, dtype
  for (int i = 0; i < count; ++i) {
    ASSERT_EQ(model.order()[i]->sharing(), Sharing::kNone) << "choose another seed";
    expected.insert({i < count / 2, model.order()[i]->dtype()});
  }
  EXPECT_EQ(BucketPlan(model.order(), options).buckets().size(), expected.size());
}

TEST(BucketPlan, CutsOutOfOrderAreRefused) {
  const RandomModel model = ModelOf(3);
  BucketPlanOptions options;
  options.cuts = {2, 1};
  EXPECT_DEATH(BucketPlan(model.order(), options), "out of order");
}

TEST(BucketPlan, SizeOneGivesEveryParameterItsOwnBucketAndInfinityOneADtype) {
  const RandomModel model = ModelOf(3);
  BucketPlanOptions options;
  options.bucket_numel = 1;
  EXPECT_EQ(BucketPlan(model.order(), options).buckets().size(), model.order().size());
}

// Stages choose max_bucket_bytes by their own compute.
TEST(BucketPlan, APieceOfASharedParameterDependsOnNoStagesChoice) {
  ParameterSpec spec;
  spec.name = "table";
  spec.global_shape = {1000, 64};
  spec.box = Box::Whole(spec.global_shape);
  spec.sharing = Sharing::kPrimary;
  const Parameter table(0, spec);
  BucketPlanOptions options;
  options.shards = 2;
  options.max_shared_bytes = 100000;
  const BucketPlan plan({&table}, options);
  EXPECT_EQ(plan.buckets().size(), 3u);
  for (int64_t bytes : {1000, 200000}) {
    options.max_bucket_bytes = bytes;
    EXPECT_EQ(BucketPlan({&table}, options).ToString(), plan.ToString());
  }
}

// Megatron-LM 3007: parameters of 95x95 and 95 elements, bucket size 9050, two ranks.
TEST(BucketPlan, OddSizesStartAlignedAndEndAtMultiples) {
  std::vector<std::unique_ptr<Parameter>> owned;
  std::vector<const Parameter*> order;
  for (const Shape& shape : {Shape{95, 95}, Shape{95}, Shape{95, 95}, Shape{95}}) {
    ParameterSpec spec;
    spec.name = "p" + std::to_string(owned.size());
    spec.global_shape = shape;
    spec.box = Box::Whole(shape);
    owned.push_back(std::make_unique<Parameter>(static_cast<int>(owned.size()), std::move(spec)));
    order.push_back(owned.back().get());
  }
  BucketPlanOptions options;
  options.shards = 2;
  options.bucket_numel = 9050;
  const BucketPlan plan(order, options);
  ExpectInvariants(plan, order, options);
  ASSERT_EQ(plan.buckets().size(), 2u);
  EXPECT_EQ(plan.buckets()[0].numel, 9216);  // 9025 -> 9088, + 95 = 9183 -> 9216
}

}  // namespace
}  // namespace forerun
