// SPDX-License-Identifier: Apache-2.0
// Whole jobs under full recompute: it saves memory, and changes neither a bit nor what is
// communicated with the data-parallel ranks.
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/job.h"

namespace forerun {
namespace {

using Method = RecomputePlan::Method;

JobSpec TinyGpt2() {
  JobSpec spec = T0Overlapped();
  spec.config.hidden_size = 16;
  spec.config.ffn_hidden_size = 32;
  spec.config.num_attention_heads = 4;
  spec.config.num_query_groups = 4;
  spec.config.seq_length = 8;
  spec.config.max_position_embeddings = 8;
  spec.config.vocab_size = 32;
  spec.config.padded_vocab_size = 32;
  spec.options.seq_length = 8;
  spec.options.data_parallel.bucket_numel = 512;
  spec.iterations = 3;
  return spec;
}

JobSpec TinyLlama() {
  JobSpec spec = TinyGpt2();
  spec.config.num_query_groups = 2;
  spec.config.position_embedding = PositionEmbedding::kRope;
  spec.config.norm = NormKind::kRmsNorm;
  spec.config.swiglu = true;
  spec.config.add_bias_linear = false;
  spec.config.tied_embeddings = true;
  spec.config.post_sublayer_norms = true;
  return spec;
}

struct Layout {
  int tp, pp, dp;
};

class RecomputeJob : public testing::TestWithParam<std::tuple<Layout, bool, float>> {
 protected:
  JobSpec Spec() const {
    const auto& [layout, llama, dropout] = GetParam();
    JobSpec spec = llama ? TinyLlama() : TinyGpt2();
    spec.tp = layout.tp;
    spec.pp = layout.pp;
    spec.dp = layout.dp;
    spec.config.attention_dropout = spec.config.hidden_dropout = dropout;
    return spec;
  }
};

TEST_P(RecomputeJob, ChangesNoBitAndNoIssueOrder) {
  JobSpec plain = Spec();
  plain.options.data_parallel = T0().options.data_parallel;
  const auto expected = RunJob(plain);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (const RecomputePlan& plan :
       {RecomputePlan{Method::kUniform, 1}, {Method::kUniform, 2}, {Method::kBlock, 1}}) {
    JobSpec spec = Spec();
    spec.recompute = plan;
    spec.options.data_parallel.forward_order = ForwardOrderMode::kStrict;
    const auto result = RunJob(spec);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(BitDifference(*result, *expected), "");
    EXPECT_EQ(OncePerStepDifference(*result, spec.iterations), "");
  }
}

std::string NameOf(const testing::TestParamInfo<std::tuple<Layout, bool, float>>& info) {
  const auto& [layout, llama, dropout] = info.param;
  return absl::StrCat("tp", layout.tp, "pp", layout.pp, "dp", layout.dp, llama ? "Llama" : "Gpt2",
                      dropout > 0.0f ? "Dropout" : "");
}

INSTANTIATE_TEST_SUITE_P(Layouts, RecomputeJob,
                         testing::Combine(testing::Values(Layout{2, 2, 2}, Layout{1, 1, 4}),
                                          testing::Bool(), testing::Values(0.0f, 0.1f)),
                         NameOf);

// The recorded order shows what flows within a segment, too.
TEST(RecomputeGraph, IsThatOfTheModelWithout) {
  const auto graph_of = [](const RecomputePlan& plan) {
    JobSpec spec = TinyGpt2();
    spec.recompute = plan;
    spec.iterations = 0;
    std::string text;
    spec.inspect = [&](RankTrainer& trainer, int64_t) {
      text = trainer.data_parallel().graph(0).ToString();
      return absl::OkStatus();
    };
    EXPECT_TRUE(RunJob(spec).ok());
    return text;
  };
  EXPECT_EQ(graph_of({Method::kUniform, 2}), graph_of({}));
}

}  // namespace
}  // namespace forerun
