// SPDX-License-Identifier: Apache-2.0
// Megatron-LM 950: parameters registered A, B, C and run A, C, B; C's gather was never started and
// C was computed with the weights of the step before, silently. The kind of fault: anything that
// takes the order of registration for the order of use.
#include <memory>
#include <string>

#include "core/autograd/functions.h"
#include "core/nn/functions.h"
#include "core/nn/registry.h"
#include "gtest/gtest.h"
#include "parallel/tensor_parallel/vocab_parallel_cross_entropy.h"
#include "tests/support/job.h"

namespace forerun {
namespace {

// An embedding and three square layers, whose order of use is not that of registration.
class ThreeLayerChunk final : public ModelChunk {
 public:
  ThreeLayerChunk(comm::ProcessGroup& group, std::string run_order)
      : group_(group), run_order_(std::move(run_order)) {
    table_ = &Declare("table", {kVocabulary, kHidden});
    for (const char* name : {"A", "B", "C"}) layers_.push_back(&Declare(name, {kHidden, kHidden}));
  }

  const ParameterRegistry& registry() const override { return registry_; }
  bool first() const override { return true; }
  bool last() const override { return true; }

  Value Forward(const ForwardContext& context, const Value&,
                const Microbatch& microbatch) const override {
    const Value logits = Logits(context, {}, microbatch.tokens);
    const Value losses =
        VocabParallelCrossEntropy(context, logits, microbatch.targets, kVocabulary, group_);
    return ScaledMean(context, losses, 1.0f);
  }
  Value Logits(const ForwardContext& context, const Value&, const Tensor& tokens) const override {
    Value x = Embedding(context, tokens, *table_, 0, "embedding");
    for (char layer : run_order_) {
      const Parameter& weight = *layers_[layer - 'A'];
      x = Add(context, x, LinearGelu(context, x, weight, nullptr, GeluKind::kTanh, weight.name()));
    }
    return Linear(context, x, *table_, nullptr, "head");
  }
  Shape ActivationShape(int64_t s, int64_t b) const override { return {s, b, kHidden}; }
  DType activation_dtype() const override { return DType::kF32; }

 private:
  static constexpr int64_t kVocabulary = 128;
  static constexpr int64_t kHidden = 64;

  const Parameter& Declare(const std::string& name, const Shape& shape) {
    ParameterSpec spec;
    spec.name = name;
    spec.global_shape = shape;
    spec.box = Box::Whole(shape);
    return registry_.Declare(spec, Init::Normal(0.1));
  }

  comm::ProcessGroup& group_;
  const std::string run_order_;
  ParameterRegistry registry_;
  const Parameter* table_;
  std::vector<const Parameter*> layers_;
};

// dp=4, 100 steps: the same bits as with overlap off, every bucket gathered once a step in plan
// order, and no NaN of the poison ever read.
void ExpectOverlapChangesNothing(JobSpec plain) {
  plain.dp = 4;
  plain.iterations = 100;
  JobSpec overlapped = plain;
  overlapped.options.data_parallel = T0Overlapped().options.data_parallel;
  const auto expected = RunJob(plain);
  const auto result = RunJob(overlapped);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(BitDifference(*result, *expected), "");
  EXPECT_EQ(OncePerStepDifference(*result, plain.iterations), "");
  EXPECT_LT(result->losses.back(), result->losses.front());
}

TEST(Megatron950, MlpRegisteredBeforeAttention) {
  JobSpec spec = T0();
  spec.order = *RegistrationOrder::Parse("mlp-first");
  ExpectOverlapChangesNothing(spec);
}

TEST(Megatron950, AllRegisteredInReverse) {
  JobSpec spec = T0();
  spec.order = *RegistrationOrder::Parse("reversed");
  ExpectOverlapChangesNothing(spec);
}

TEST(Megatron950, RegisteredABCAndRunACB) {
  JobSpec spec = T0();
  spec.make_chunk = [](const ParallelContext& parallel) {
    return std::make_unique<ThreeLayerChunk>(parallel.tensor(), "ACB");
  };
  ExpectOverlapChangesNothing(spec);
}

TEST(Megatron950, ABorrowedWeightIsNeverStale) {
  JobSpec spec = T0();
  spec.make_chunk = [](const ParallelContext& parallel) {
    return std::make_unique<ThreeLayerChunk>(parallel.tensor(), "ACBC");  // C read before its turn
  };
  ExpectOverlapChangesNothing(spec);
}

TEST(Megatron950, TheIssueOrderIsTheForwardOrder) {
  JobSpec spec = T0Overlapped();
  spec.options.data_parallel.bucket_numel = 1;  // a bucket a parameter
  spec.dp = 2;
  spec.iterations = 1;
  spec.make_chunk = [](const ParallelContext& parallel) {
    return std::make_unique<ThreeLayerChunk>(parallel.tensor(), "ACB");
  };
  std::vector<std::string> order;
  spec.inspect = [&](RankTrainer& trainer, int64_t done) {
    if (done == 1 && trainer.parallel().rank() == 0) {
      for (const Bucket& bucket : trainer.data_parallel().plan().buckets()) {
        order.push_back(bucket.pieces[0].parameter->name());
      }
    }
    return absl::OkStatus();
  };
  const auto result = RunJob(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(order, (std::vector<std::string>{"table", "A", "C", "B"}));
  EXPECT_EQ(result->gathers[0], (std::vector<int>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace forerun
