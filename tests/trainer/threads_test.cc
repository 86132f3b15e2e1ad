// SPDX-License-Identifier: Apache-2.0
// Whole jobs with eight ranks as threads, small enough for the thread sanitizer: what it looks for
// is a race anywhere between the model's backward pass, reductions, the optimizer and gathers.
#include "gtest/gtest.h"
#include "tests/support/job.h"

namespace forerun {
namespace {

JobSpec Tiny() {
  JobSpec spec = T0Overlapped();
  spec.config.hidden_size = 16;
  spec.config.ffn_hidden_size = 32;
  spec.config.num_attention_heads = 2;
  spec.config.num_query_groups = 2;
  spec.config.seq_length = 8;
  spec.config.max_position_embeddings = 8;
  spec.config.vocab_size = 32;
  spec.config.padded_vocab_size = 32;
  spec.config.num_layers = 2;
  spec.options.seq_length = 8;
  spec.options.data_parallel.bucket_numel = 512;
  spec.iterations = 4;
  return spec;
}

void ExpectEqualToOneRank(JobSpec spec) {
  JobSpec reference = spec;
  reference.tp = reference.pp = reference.dp = 1;
  reference.options.data_parallel = T0().options.data_parallel;
  const auto expected = RunJob(reference);
  const auto result = RunJob(spec);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(BoundDifference(*result, *expected, spec.config), "");
  EXPECT_EQ(OncePerStepDifference(*result, spec.iterations), "");
}

TEST(Threads, TensorPipelineAndDataParallelTogether) {
  JobSpec spec = Tiny();
  spec.tp = spec.pp = spec.dp = 2;
  ExpectEqualToOneRank(spec);
}

TEST(Threads, DataParallelAlone) {
  JobSpec spec = Tiny();
  spec.dp = 4;
  spec.options.data_parallel.bucket_numel = 1;
  ExpectEqualToOneRank(spec);
}

TEST(Threads, ATiedTableOverStages) {
  JobSpec spec = Tiny();
  spec.config.tied_embeddings = true;
  spec.pp = spec.dp = 2;
  spec.options.pipeline_schedule = "gpipe";
  ExpectEqualToOneRank(spec);
}

// An error on one rank ends all of them, with that error.
TEST(Threads, OneRanksErrorEndsTheJob) {
  JobSpec spec = Tiny();
  spec.tp = spec.pp = spec.dp = 2;
  spec.inspect = [](RankTrainer& trainer, int64_t done) {
    return done == 2 && trainer.parallel().rank() == 5 ? absl::DataLossError("rank 5 has had it")
                                                       : absl::OkStatus();
  };
  EXPECT_EQ(RunJob(spec).status().message(), "rank 5 has had it");
}

// A tensor of a parameter that is kept over the optimizer step is refused by name.
TEST(Threads, ALeaseThatIsKeptIsRefused) {
  JobSpec spec = Tiny();
  Tensor kept;
  spec.inspect = [&](RankTrainer& trainer, int64_t done) {
    if (done == 1) {
      InlineStream host(Device{});
      const Parameter& parameter = *trainer.chunk().registry().parameters()[0];
      kept = trainer.data_parallel().gate().Read(parameter, host, "a debugger").tensor();
    }
    return absl::OkStatus();
  };
  const absl::Status status = RunJob(spec).status();
  EXPECT_EQ(status.message(),
            "parameter embedding.word_embeddings.weight cannot be updated: a debugger still holds "
            "a tensor of it from before the optimizer step");
}

}  // namespace
}  // namespace forerun
