// SPDX-License-Identifier: Apache-2.0
// Every layout against one rank, and everything that must not change a bit. One binary that loops:
// a process a layout would spend its time starting.
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/job.h"

namespace forerun {
namespace {

constexpr int kMostRanks = 8;

struct Layout {
  int tp, pp, dp;
  std::string ToString() const { return absl::StrCat("tp=", tp, " pp=", pp, " dp=", dp); }
};

std::vector<Layout> AllLayouts() {
  std::vector<Layout> layouts;
  for (int tp : {1, 2}) {
    for (int pp : {1, 2, 4}) {
      for (int dp : {1, 2, 3, 4}) {
        if (tp * pp * dp <= kMostRanks) layouts.push_back({tp, pp, dp});
      }
    }
  }
  return layouts;
}

JobSpec At(JobSpec spec, const Layout& layout) {
  spec.tp = layout.tp;
  spec.pp = layout.pp;
  spec.dp = layout.dp;
  if (layout.dp == 3) spec.options.global_batch_size = 12;
  return spec;
}

JobResult Train(const JobSpec& spec) {
  const absl::StatusOr<JobResult> result = RunJob(spec);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : JobResult{};
}

// Model variants: T0 itself, and a Llama with grouped queries and a tied head.
GptConfig Llama(GptConfig config) {
  config.position_embedding = PositionEmbedding::kRope;
  config.norm = NormKind::kRmsNorm;
  config.swiglu = true;
  config.add_bias_linear = false;
  config.num_query_groups = 2;
  config.tied_embeddings = true;
  return config;
}

void ExpectAllLayoutsEqualOneRank(const GptConfig& config) {
  JobSpec reference = T0();
  reference.config = config;
  const JobResult of_8 = Train(reference);
  reference.options.global_batch_size = 12;
  const JobResult of_12 = Train(reference);
  for (const Layout& layout : AllLayouts()) {
    for (const std::string schedule : {"1f1b", "gpipe"}) {
      if (layout.pp == 1 && schedule == "gpipe") continue;  // the same list of actions
      JobSpec spec = At(T0Overlapped(), layout);
      spec.config = config;
      spec.options.pipeline_schedule = schedule;
      const JobResult result = Train(spec);
      EXPECT_EQ(BoundDifference(result, layout.dp == 3 ? of_12 : of_8, config), "")
          << layout.ToString() << " " << schedule;
      EXPECT_EQ(OncePerStepDifference(result, spec.iterations), "") << layout.ToString();
    }
  }
}

TEST(T0Matrix, EveryLayoutAndScheduleEqualsOneRank) { ExpectAllLayoutsEqualOneRank(T0().config); }

TEST(T0Matrix, EveryLayoutOfATiedLlamaEqualsOneRank) {
  ExpectAllLayoutsEqualOneRank(Llama(T0().config));
}

TEST(T0Matrix, StagesOfUnequalLengthEqualOneRank) {
  const JobResult expected = Train(T0());
  for (const EndStages& ends : {EndStages{0, 1}, EndStages{1, 0}}) {
    JobSpec spec = At(T0Overlapped(), {1, 2, 2});
    spec.config.end_stages = ends;
    EXPECT_EQ(BoundDifference(Train(spec), expected, spec.config), "")
        << ends.first << " " << ends.last;
  }
}

// Everything that may change speed and nothing else.
std::vector<std::pair<std::string, JobSpec>> Variants(const JobSpec& plain) {
  std::vector<std::pair<std::string, JobSpec>> variants;
  const JobSpec overlapped = T0Overlapped();
  const auto add = [&](const std::string& name, auto change) {
    JobSpec spec = plain;
    spec.options.data_parallel = overlapped.options.data_parallel;
    change(spec);
    variants.emplace_back(name, spec);
  };
  for (int64_t numel : {int64_t{1}, int64_t{4096}, int64_t{8192}, int64_t{1} << 40}) {
    add(absl::StrCat("bucket ", numel),
        [&](JobSpec& spec) { spec.options.data_parallel.bucket_numel = numel; });
  }
  add("bucket size chosen", [](JobSpec& spec) { spec.options.data_parallel.bucket_numel.reset(); });
  add("no sharding", [](JobSpec& spec) { spec.options.data_parallel.shard_optimizer = false; });
  add("no gather overlap",
      [](JobSpec& spec) { spec.options.data_parallel.overlap_param_gather = false; });
  add("no reduce overlap",
      [](JobSpec& spec) { spec.options.data_parallel.overlap_grad_reduce = false; });
  for (const std::string order : {"reversed", "mlp-first", "shuffled:1", "shuffled:2"}) {
    add(order, [&](JobSpec& spec) { spec.order = *RegistrationOrder::Parse(order); });
  }
  return variants;
}

TEST(T0Matrix, OverlapShardingBucketsAndRegistrationChangeNoBit) {
  for (const Layout& layout :
       {Layout{1, 1, 4}, Layout{1, 1, 3}, Layout{2, 2, 2}, Layout{1, 4, 2}}) {
    const JobSpec plain = At(T0(), layout);
    const JobResult expected = Train(plain);
    for (const auto& [name, spec] : Variants(plain)) {
      const JobResult result = Train(spec);
      EXPECT_EQ(BitDifference(result, expected), "") << layout.ToString() << ", " << name;
      EXPECT_EQ(result.checksum, expected.checksum) << layout.ToString() << ", " << name;
    }
  }
}

TEST(T0Matrix, ABfloat16ModelHasTheSameBitsShardedOverlappedOrNot) {
  JobSpec plain = At(T0(), {1, 1, 2});
  plain.config.dtype = DType::kBF16;
  const JobResult expected = Train(plain);
  EXPECT_LT(expected.losses.back(), expected.losses.front());
  for (const auto& [name, spec] : Variants(plain)) {
    EXPECT_EQ(BitDifference(Train(spec), expected), "") << name;
  }
}

TEST(T0Matrix, DropoutDependsOnNoLayout) {
  JobSpec reference = T0();
  reference.config.hidden_dropout = 0.1f;
  reference.config.attention_dropout = 0.1f;
  const JobResult expected = Train(reference);
  for (const Layout& layout : {Layout{2, 1, 1}, Layout{1, 2, 2}, Layout{2, 2, 2}}) {
    JobSpec spec = At(T0Overlapped(), layout);
    spec.config = reference.config;
    EXPECT_EQ(BoundDifference(Train(spec), expected, spec.config), "") << layout.ToString();
  }
}

}  // namespace
}  // namespace forerun
