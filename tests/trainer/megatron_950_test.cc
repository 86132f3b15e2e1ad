// SPDX-License-Identifier: Apache-2.0
// The command line of Megatron-LM issue 950, given to the real program: with the gather of
// parameters overlapped, the loss was silently another one.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/output_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/program.h"

namespace forerun {
namespace {

using testing::HasSubstr;

constexpr char kIssue[] =
    "--world-size 4 --vocab-size 256 --mock-data --tensor-model-parallel-size 1 "
    "--pipeline-model-parallel-size 1 --overlap-grad-reduce --use-mcore-models "
    "--use-distributed-optimizer --sequence-parallel --num-layers 1 --micro-batch-size 1 "
    "--global-batch-size 4 --train-iters 20 --lr-decay-iters 320000 --lr 5.0e-7 "
    "--lr-decay-style cosine --clip-grad 1.0 --weight-decay 0.1 --adam-beta1 0.9 "
    "--adam-beta2 0.95 --init-method-std 0.006 --no-gradient-accumulation-fusion "
    "--use-flash-attn --disable-bias-linear --position-embedding-type rope "
    "--attention-dropout 0.0 --hidden-dropout 0.0 --bf16 ";
constexpr char kSmall[] =
    "--hidden-size 512 --num-attention-heads 8 --seq-length 256 --max-position-embeddings 256 ";
constexpr char kAsReported[] =
    "--hidden-size 8192 --num-attention-heads 64 --seq-length 2048 "
    "--max-position-embeddings 2048 ";

struct Trained {
  std::vector<double> losses;
  std::vector<double> grad_norms;
  std::string checksum;  // the program's line
};

Trained Train(const std::string& name, absl::string_view flags) {
  const std::string metrics = absl::StrCat(testing::TempDir(), "/", name, ".jsonl");
  const ProgramResult result = RunProgram(
      "trainer/pretrain_gpt",
      absl::StrCat(kIssue, kSmall, flags, " --eval-iters 0 --threads-per-rank 1 --param-checksum ",
                   "--metrics-file ", metrics));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  Trained trained;
  const absl::StatusOr<std::string> lines = ReadFile(metrics);
  EXPECT_TRUE(lines.ok()) << lines.status();
  if (!lines.ok()) return trained;
  for (absl::string_view text : absl::StrSplit(*lines, '\n', absl::SkipEmpty())) {
    const nlohmann::json line = nlohmann::json::parse(text.begin(), text.end());
    trained.losses.push_back(line.at("loss").get<double>());
    trained.grad_norms.push_back(line.at("grad_norm").get<double>());
  }
  const size_t at = result.out.find("parameter checksum: ");
  EXPECT_NE(at, std::string::npos) << result.out;
  if (at != std::string::npos)
    trained.checksum = result.out.substr(at, result.out.find('\n', at) - at);
  return trained;
}

TEST(Megatron950Command, OverlappingTheGatherChangesNoBit) {
  const Trained apart = Train("apart", "");
  const Trained overlapped = Train("overlapped", "--overlap-param-gather");
  const Trained poisoned =
      Train("poisoned", "--overlap_param_gather --poison-stale-params --ddp-bucket-size 100000");
  ASSERT_EQ(apart.losses.size(), 20u);
  for (const Trained* other : {&overlapped, &poisoned}) {
    EXPECT_EQ(other->losses, apart.losses);
    EXPECT_EQ(other->grad_norms, apart.grad_norms);
    EXPECT_EQ(other->checksum, apart.checksum);
  }
}

TEST(Megatron950Command, AtItsFullSizeADryRunPrintsThePlan) {
  const ProgramResult result =
      RunProgram("trainer/pretrain_gpt",
                 absl::StrCat(kIssue, kAsReported, "--overlap-param-gather --dry-run"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("layout: 4 ranks = tp 1 x dp 4 x pp 1"));
  EXPECT_THAT(result.out, HasSubstr("bucket 0: bf16"));
  EXPECT_THAT(result.out, HasSubstr("--use-flash-attn is accepted and has no effect here"));
}

}  // namespace
}  // namespace forerun
