// SPDX-License-Identifier: Apache-2.0
// Megatron-LM 3007: parameters of 95x95 and 95 in buckets of 9050 over two ranks; starts were not
// aligned, and pieces of neighbours overlapped. The kind of fault: padding that is reckoned for a
// bucket or for a parameter, but not for both. DeepSpeed 8280: a parameter of no elements among
// them.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/autograd/testing/test_device.h"
#include "core/nn/registry.h"
#include "gtest/gtest.h"
#include "parallel/data_parallel/bucket_buffer.h"
#include "parallel/data_parallel/bucket_plan.h"
#include "parallel/data_parallel/param_gate.h"
#include "parallel/data_parallel/testing/rank_job.h"
#include "tests/support/reducing_rank.h"

namespace forerun {
namespace {

BucketPlanOptions PlanOptions() {
  BucketPlanOptions options;
  options.shards = 2;
  options.bucket_numel = 9050;
  return options;
}

class Parameters {
 public:
  explicit Parameters(const std::vector<Shape>& shapes) {
    for (const Shape& shape : shapes) {
      order_.push_back(&registry_.Declare({.name = absl::StrCat("p", order_.size()),
                                           .global_shape = shape,
                                           .box = Box::Whole(shape)},
                                          Init::Normal(1.0)));
    }
  }

  const std::vector<const Parameter*>& order() const { return order_; }
  std::vector<float> Initial(const Parameter& parameter) const {
    std::vector<float> values(parameter.numel());
    InitialValue(parameter, registry_.init(parameter), /*seed=*/1, absl::MakeSpan(values));
    return values;
  }

 private:
  ParameterRegistry registry_;
  std::vector<const Parameter*> order_;
};

// Each rank publishes its shards as they are; poison says what was not gathered.
void ExpectGatheredIsScattered(const Parameters& parameters) {
  const absl::Status status = RankJob(2).Run([&](const RankContext& rank) {
    const BucketPlan plan(parameters.order(), PlanOptions());
    BucketBuffer buffer(plan, {}, rank.op);
    for (const Parameter* parameter : parameters.order()) {
      const std::vector<float> values = parameters.Initial(*parameter);
      std::copy(values.begin(), values.end(), buffer.Initial(*parameter).mutable_data<float>());
    }
    ParamGate::Options options;
    options.poison = true;
    ParamGate gate(buffer, rank.group, options, [] { return 0.0; });
    for (int b = 0; b < static_cast<int>(plan.buckets().size()); ++b) {
      gate.Accept(b, *rank.op.stream);
      gate.Publish(b);
    }
    gate.Finish(*rank.op.stream);
    for (const Parameter* parameter : parameters.order()) {
      const ParamLease lease = gate.Read(*parameter, *rank.op.stream, "test");
      const std::vector<float> expected = parameters.Initial(*parameter);
      EXPECT_EQ(ValuesOf(lease.tensor()), std::vector<double>(expected.begin(), expected.end()));
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

void ExpectSumsAreRight(const Parameters& parameters) {
  const absl::Status status = RankJob(2).Run([&](const RankContext& rank) {
    ReducingRank self(parameters.order(), *PlanOptions().bucket_numel, rank.op, rank.group, {},
                      [] { return 0.0; });
    self.Step(0, /*microbatches=*/2);
    EXPECT_EQ(self.WrongSums(0, 2), 0);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
}

TEST(Megatron3007, PiecesAreAlignedAndApartAndScatterThenGatherIsTheIdentity) {
  const Parameters parameters({{95, 95}, {95}, {95, 95}, {95}, {95}});
  const BucketPlan plan(parameters.order(), PlanOptions());
  for (const Bucket& bucket : plan.buckets()) {
    int64_t end = 0;
    for (const BucketPiece& piece : bucket.pieces) {
      EXPECT_EQ(piece.bucket_begin % PlanOptions().alignment, 0);
      EXPECT_GE(piece.bucket_begin, end);
      EXPECT_EQ(piece.numel, piece.parameter->numel());
      end = piece.bucket_begin + piece.numel;
    }
    EXPECT_GE(bucket.numel, end);
    EXPECT_EQ(bucket.numel % (plan.shards() * PlanOptions().alignment), 0);
  }
  EXPECT_EQ(plan.buckets().size(), 3u);
  ExpectGatheredIsScattered(parameters);
  ExpectSumsAreRight(parameters);
}

TEST(DeepSpeed8280, AParameterOfNoElementsIsCarriedAlong) {
  for (const auto& shapes : std::vector<std::vector<Shape>>{
           {{95, 95}, {0, 95}, {95}}, {{0}, {95, 95}}, {{95, 95}, {0}}, {{0}}}) {
    const Parameters parameters(shapes);
    ExpectGatheredIsScattered(parameters);
    ExpectSumsAreRight(parameters);
  }
}

}  // namespace
}  // namespace forerun
