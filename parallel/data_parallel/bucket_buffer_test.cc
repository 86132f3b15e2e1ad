// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/bucket_buffer.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/autograd/testing/test_device.h"
#include "gtest/gtest.h"
#include "parallel/data_parallel/param_gate.h"
#include "parallel/data_parallel/testing/rank_job.h"
#include "parallel/data_parallel/testing/test_parameters.h"

namespace forerun {
namespace {

// Elements are marked with their parameter and place: exact in bf16 where the model is mixed.
float Mark(int parameter, int64_t i) { return static_cast<float>(16 * parameter + i % 16); }

class BucketBufferTest : public testing::TestWithParam<int> {
 protected:
  // Marks every parameter through Initial.
  void MarkAll(BucketBuffer& buffer) {
    for (const Parameter* parameter : parameters_.order()) {
      const Tensor value = buffer.Initial(*parameter);
      ASSERT_EQ(value.shape(), parameter->shape());
      ASSERT_EQ(value.dtype(), parameter->dtype());
      ASSERT_TRUE(value.is_contiguous());
      const int index = buffer.plan().IndexOf(*parameter);
      VisitFloating(value.dtype(), [&](auto element) {
        using T = decltype(element);
        for (int64_t i = 0; i < value.numel(); ++i) value.mutable_data<T>()[i] = T(Mark(index, i));
      });
    }
  }

  const TestParameters parameters_{/*mixed=*/true};
  TestDevice cpu_{DeviceKind::kCpu};
};

// What is written through Initial is what the shards hold, where the plan says, and all else is
// zero: so parameters overlap nowhere, a cut one is contiguous, and shards tile their bucket.
TEST_P(BucketBufferTest, EveryElementLiesWhereThePlanSaysAndPaddingIsZero) {
  const BucketPlan plan = parameters_.Plan(GetParam());
  ASSERT_GT(plan.BucketsOf(plan.IndexOf(parameters_.named("cut"))).size(), 1u);
  BucketBuffer buffer(plan, parameters_.frozen(), cpu_.op());
  MarkAll(buffer);
  for (size_t b = 0; b < plan.buckets().size(); ++b) {
    const Bucket& bucket = plan.buckets()[b];
    std::vector<double> expected(bucket.numel, 0.0);
    for (const BucketPiece& piece : bucket.pieces) {
      for (int64_t i = 0; i < piece.numel; ++i) {
        expected[piece.bucket_begin + i] =
            Mark(plan.IndexOf(*piece.parameter), piece.parameter_begin + i);
      }
    }
    std::vector<double> held;
    for (int shard = 0; shard < plan.shards(); ++shard) {
      const ShardWriter writer(buffer, shard);
      EXPECT_EQ(writer.shard_numel(b), bucket.numel / plan.shards());
      const std::vector<double> values = ValuesOf(writer.Params(b));
      EXPECT_EQ(values.size(), static_cast<size_t>(writer.shard_numel(b)));
      held.insert(held.end(), values.begin(), values.end());
    }
    EXPECT_EQ(held, expected) << "bucket " << b;
  }
}

TEST_P(BucketBufferTest, PiecesOfAllShardsCoverEachParameterOnceFromAlignedBeginnings) {
  const BucketPlan plan = parameters_.Plan(GetParam());
  BucketBuffer buffer(plan, parameters_.frozen(), cpu_.op());
  MarkAll(buffer);
  std::map<const Parameter*, std::vector<int>> covered;
  for (const Parameter* parameter : parameters_.order()) {
    covered[parameter].assign(parameter->numel(), 0);
  }
  for (int shard = 0; shard < plan.shards(); ++shard) {
    const ShardWriter writer(buffer, shard);
    for (size_t b = 0; b < plan.buckets().size(); ++b) {
      const std::vector<double> values = ValuesOf(writer.Params(b));
      for (const BucketPiece& piece : writer.Pieces(b)) {
        EXPECT_EQ(piece.parameter_begin % 64, 0);
        ASSERT_LE(piece.bucket_begin + piece.numel, writer.shard_numel(b));
        for (int64_t i = 0; i < piece.numel; ++i) {
          ++covered[piece.parameter][piece.parameter_begin + i];
          EXPECT_EQ(values[piece.bucket_begin + i],
                    Mark(plan.IndexOf(*piece.parameter), piece.parameter_begin + i));
        }
      }
    }
  }
  for (const auto& [parameter, counts] : covered) {
    EXPECT_TRUE(std::all_of(counts.begin(), counts.end(), [](int n) { return n == 1; }))
        << parameter->name();
  }
}

TEST_P(BucketBufferTest, GradientsAreFp32ZeroAndApartFromParameters) {
  const BucketPlan plan = parameters_.Plan(GetParam());
  BucketBuffer buffer(plan, parameters_.frozen(), cpu_.op());
  MarkAll(buffer);
  for (int shard = 0; shard < plan.shards(); ++shard) {
    const ShardWriter writer(buffer, shard);
    for (size_t b = 0; b < plan.buckets().size(); ++b) {
      EXPECT_EQ(writer.Grads(b).dtype(), DType::kF32);
      EXPECT_EQ(ValuesOf(writer.Grads(b)), std::vector<double>(writer.shard_numel(b), 0.0));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, BucketBufferTest, testing::Range(1, 5),
                         [](const auto& info) { return std::to_string(info.param); });

TEST(BucketBuffer, FrozenParametersHaveMemoryOfTheirOwn) {
  const TestParameters parameters;
  TestDevice cpu(DeviceKind::kCpu);
  const BucketPlan plan = parameters.Plan(2);
  BucketBuffer buffer(plan, parameters.frozen(), cpu.op());
  const Tensor frozen = buffer.Initial(parameters.named("frozen"));
  EXPECT_EQ(ValuesOf(frozen), std::vector<double>(5, 0.0));
  std::fill_n(frozen.mutable_data<float>(), 5, 7.0f);
  for (size_t b = 0; b < plan.buckets().size(); ++b) {
    for (int shard : {0, 1}) {
      const std::vector<double> values = ValuesOf(ShardWriter(buffer, shard).Params(b));
      EXPECT_EQ(std::count(values.begin(), values.end(), 7.0), 0);
    }
  }
}

TEST(BucketBuffer, OnMetaItCountsItsMemoryAndHoldsNone) {
  const TestParameters parameters;
  TestDevice meta(DeviceKind::kMeta);
  const BucketPlan plan = parameters.Plan(4);
  int64_t bytes = 5 * 4;  // frozen
  for (const Bucket& bucket : plan.buckets()) bytes += bucket.bytes() + bucket.numel * 4;
  const BucketBuffer buffer(plan, parameters.frozen(), meta.op());
  EXPECT_GE(meta.allocator().bytes_in_use(), bytes);
  EXPECT_LE(meta.allocator().bytes_in_use(), bytes + 3 * 64);
}

TEST(BucketBuffer, AfterTheFirstReadNothingIsInitialised) {
  const TestParameters parameters;
  RankJob job(1);
  const absl::Status status = job.Run([&](const RankContext& rank) {
    const BucketPlan plan = parameters.Plan(1);
    BucketBuffer buffer(plan, parameters.frozen(), rank.op);
    ParamGate gate(buffer, rank.group, {}, [] { return 0.0; });
    (void)gate.Read(parameters.named("bias"), *rank.op.stream, "layer");
    EXPECT_DEATH(buffer.Initial(parameters.named("first")),
                 "first is initialised after the first read");
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(BucketBuffer, AParameterOfNoPlanIsRefused) {
  const TestParameters parameters, others;
  TestDevice cpu(DeviceKind::kCpu);
  const BucketPlan plan = parameters.Plan(1);
  BucketBuffer buffer(plan, parameters.frozen(), cpu.op());
  EXPECT_DEATH(buffer.Initial(others.named("bias")), "bias is not in the bucket plan");
}

}  // namespace
}  // namespace forerun
