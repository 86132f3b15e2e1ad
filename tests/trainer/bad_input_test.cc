// SPDX-License-Identifier: Apache-2.0
// What a user gets wrong, with the real program: one sentence that names the thing, an exit code
// that is not 0, and nothing lost.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint.h"
#include "core/base/output_file.h"
#include "data/indexed_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/program.h"

namespace forerun {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kModel[] =
    "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --micro-batch-size 1 "
    "--lr 1e-3 --lr-decay-iters 100 --eval-iters 0 --threads-per-rank 1 --world-size 2 "
    "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather ";

ProgramResult Pretrain(absl::string_view flags) {
  return RunProgram("trainer/pretrain_gpt", absl::StrCat(kModel, flags));
}

void ExpectRefused(absl::string_view flags, const std::string& what) {
  const ProgramResult result = Pretrain(flags);
  EXPECT_THAT(result.exit_code, AnyOf(1, 2)) << flags;
  EXPECT_THAT(result.err, StartsWith("pretrain_gpt: ")) << flags;
  EXPECT_THAT(result.err, HasSubstr(what)) << flags;
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

void ExpectTrains(absl::string_view flags) {
  const ProgramResult result = Pretrain(flags);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "") << flags;
}

std::string PathOf(absl::string_view name) { return absl::StrCat(testing::TempDir(), "/", name); }

void Rewrite(const std::string& path, const std::function<void(std::string&)>& change) {
  absl::StatusOr<std::string> bytes = ReadFile(path);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  change(*bytes);
  ASSERT_TRUE(WriteFile(path, *bytes).ok());
}

// Random bytes as a corpus of 50 documents.
void WriteCorpus(const std::string& name) {
  const auto writer = IndexedDatasetWriter::Create(PathOf(name), TokenType::kUint16);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (int document = 0; document < 50; ++document) {
    std::vector<int32_t> tokens(30);
    for (int i = 0; i < 30; ++i) tokens[i] = (document * 31 + i * 7) % 256;
    ASSERT_TRUE((*writer)->AddSequence(tokens).ok());
    (*writer)->EndDocument();
  }
  ASSERT_TRUE((*writer)->Publish().ok());
}

TEST(BadInput, FlagsAndLayoutsAreNamed) {
  ExpectRefused("--mock-data --train-iters 3 --colour red", "--colour");
  ExpectRefused("--mock-data --train-iters 3 --lr fast", "--lr fast is not a number");
  ExpectRefused("--mock-data", "--train-iters is required");
  ExpectRefused("--mock-data --train-iters 3 --tensor-model-parallel-size 3",
                "--world-size 2 is not a multiple of tensor size 3 x pipeline size 1");
  ExpectRefused(
      "--mock-data --train-iters 3 --tensor-model-parallel-size 2 "
      "--num-attention-heads 1",
      "num_attention_heads 1");
  ExpectRefused("--mock-data --train-iters 3 --num-attention-heads 5", "num_attention_heads 5");
  ExpectRefused("--mock-data --train-iters 3 --global-batch-size 3", "--global-batch-size 3");
  ExpectRefused("--mock-data --train-iters 3 --world-size 2000000", "--world-size 2000000");
  ExpectRefused("--mock-data --train-iters 3 --world-size 8 --threads-per-rank 1000",
                "--world-size 8 x --threads-per-rank 1000");
  ExpectRefused("--mock-data --train-iters 3 --lr-decay-style wavy", "wavy");
  ExpectRefused("--mock-data --train-iters 3 --registration-order sideways", "sideways");
}

// Before anything is allocated.
TEST(BadInput, MoreThanTheMachineOrAnyHasIsSaidInFigures) {
  ExpectRefused("--mock-data --train-iters 3 --hidden-size 1048576", "of memory together");
  ExpectRefused("--mock-data --train-iters 3 --seq-length 1000000000", "operations a microbatch");
  ExpectRefused("--mock-data --train-iters 3 --dry-run --hidden-size 2147483644 --seq-length 999",
                "the model has about");
  ExpectRefused(
      "--mock-data --train-iters 3 --dry-run --seq-length 2147483647 --hidden-size 262144",
      "activations a microbatch");
}

TEST(BadInput, DataFilesAreNamed) {
  ExpectRefused("--data-path absent --train-iters 3", "/absent.idx");
  WriteCorpus("good");
  ExpectTrains("--data-path good --train-iters 1");
  WriteCorpus("short");
  Rewrite(PathOf("short.bin"), [](std::string& bytes) { bytes.resize(bytes.size() / 2); });
  ExpectRefused("--data-path short --train-iters 3", "short.bin");
  WriteCorpus("newer");
  constexpr int kVersionAt = 9;
  Rewrite(PathOf("newer.idx"), [](std::string& bytes) { bytes[kVersionAt] = 7; });
  ExpectRefused("--data-path newer --train-iters 3", "newer.idx");
  WriteCorpus("other");
  Rewrite(PathOf("other.idx"), [](std::string& bytes) { bytes = "not an index"; });
  ExpectRefused("--data-path other --train-iters 3", "other.idx");
  // A token that the vocabulary does not have.
  ExpectRefused("--data-path good --train-iters 3 --vocab-size 100", "good.bin");
  ExpectRefused("--data-path good --train-iters 3 --split 1,x", "--split 1,x");
}

TEST(BadInput, OutputsThatCannotBeWrittenAreNamedBeforeTraining) {
  ASSERT_TRUE(WriteFile(PathOf("file"), "in the way").ok());
  ExpectRefused("--mock-data --train-iters 1000000 --save file/checkpoints", "file/checkpoints");
  ExpectRefused("--mock-data --train-iters 1000000 --metrics-file nowhere/m.jsonl",
                "nowhere/m.jsonl");
}

// Records are worth less than the run: it goes on, saves, and ends with the error.
TEST(BadInput, RecordsThatFillTheDiskAreNamedAtOnceAndTheRunGoesOn) {
  for (const std::string file : {"metrics", "trace"}) {
    const ProgramResult result = Pretrain(absl::StrCat("--mock-data --train-iters 3 --", file,
                                                       "-file /dev/full --save records_", file));
    const std::string what =
        absl::StrCat("cannot write ", file, " file /dev/full: No space left on device");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.err, absl::StrCat("pretrain_gpt: ", what, "\n"));
    const size_t said = result.out.find(absl::StrCat(what, "; the run goes on without it"));
    ASSERT_NE(said, std::string::npos) << result.out;
    EXPECT_NE(result.out.find("saved checkpoint of iteration 3", said), std::string::npos);
  }
}

TEST(BadInput, ACorruptCheckpointIsNamed) {
  ExpectTrains("--mock-data --train-iters 2 --save flipped");
  Rewrite(PathOf("flipped/iter_0000002/rank_00001.safetensors"),
          [](std::string& bytes) { bytes[bytes.size() - 40] ^= 1; });
  ExpectRefused("--mock-data --train-iters 3 --load flipped", "rank_00001.safetensors is corrupt");
  EXPECT_THAT(Pretrain("--mock-data --train-iters 3 --load flipped").out,
              Not(HasSubstr("loaded checkpoint")));
  ExpectTrains("--mock-data --train-iters 2 --save cut");
  Rewrite(PathOf("cut/iter_0000002/rank_00000.safetensors"),
          [](std::string& bytes) { bytes.resize(bytes.size() - 100); });
  ExpectRefused("--mock-data --train-iters 3 --load cut", "rank_00000.safetensors");
  ExpectTrains("--mock-data --train-iters 2 --save half");
  Rewrite(PathOf("half/iter_0000002/manifest.json"),
          [](std::string& bytes) { bytes.resize(bytes.size() / 2); });
  ExpectRefused("--mock-data --train-iters 3 --load half", "manifest.json is corrupt");
}

TEST(BadInput, AForeignCheckpointIsNamed) {
  ExpectTrains("--mock-data --train-iters 2 --save narrow");
  ExpectRefused("--mock-data --train-iters 3 --load narrow --hidden-size 64",
                "the checkpoint's model has --hidden-size 32, this run's has 64");
  ExpectRefused("--mock-data --train-iters 3 --load narrow --num-layers 4", "--num-layers 2");
  ExpectRefused("--mock-data --train-iters 3 --load narrow --vocab-size 1000", "--vocab-size");
  ExpectRefused("--mock-data --train-iters 3 --load narrow/iter_0000002",
                "narrow/iter_0000002 holds no checkpoint");
  ExpectRefused("--mock-data --train-iters 3 --load absent", "absent holds no checkpoint");
}

// A loss that is no number ends the run and leaves the checkpoint of before as it was.
TEST(BadInput, ALossThatIsNoNumberEndsTheRunAndLosesNothing) {
  ExpectTrains("--mock-data --train-iters 2 --save kept");
  for (const std::string layout :
       {"", "--world-size 8 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "}) {
    ExpectRefused(
        absl::StrCat(
            "--mock-data --train-iters 20 --lr 1e38 --override-opt_param-scheduler --load kept "
            "--save kept ",
            layout),
        " at iteration ");
  }
  ExpectTrains("--mock-data --train-iters 3 --load kept --save kept");
}

TEST(BadInput, ARunThatFailsForAnotherReasonKeepsTheCheckpointOfBefore) {
  ExpectTrains("--mock-data --train-iters 2 --save before");
  ExpectRefused("--mock-data --train-iters 3 --load before --save before --hidden-size 64",
                "the checkpoint's model");
  ExpectRefused("--data-path absent --train-iters 3 --load before --save before", "absent.idx");
  ExpectTrains("--mock-data --train-iters 3 --load before --save before");
}

// Files may be no longer than 16 KiB: a full disk, as far as a writer can tell.
ProgramResult PretrainOnAFullDisk(absl::string_view flags) {
  return RunProgram("bash", absl::StrCat("-c 'ulimit -f 16; trap \"\" XFSZ; exec "
                                         "trainer/pretrain_gpt ",
                                         kModel, flags, "'"));
}

TEST(BadInput, AFullDiskIsOneErrorAndTheCheckpointOfBeforeStaysTheNewest) {
  const std::string folder = PathOf("full");
  for (const std::string how : {"", "--async-save "}) {
    std::filesystem::remove_all(folder);
    ExpectTrains("--mock-data --train-iters 2 --save full");
    const ProgramResult full = PretrainOnAFullDisk(
        absl::StrCat(how, "--mock-data --train-iters 8 --save-interval 3 --load full --save full"));
    EXPECT_EQ(full.exit_code, 1) << full.out;
    EXPECT_THAT(full.err, HasSubstr("the checkpoint of iteration 3 was not saved: "));
    EXPECT_THAT(full.err, HasSubstr(".safetensors cannot be written: File too large"));
    EXPECT_FALSE(std::filesystem::exists(folder + "/iter_0000003.tmp"));
    const auto before = Checkpoint::Open(folder);
    ASSERT_TRUE(before.ok()) << before.status();
    EXPECT_EQ((*before)->iteration(), 2);
    EXPECT_EQ((*before)->Verify(), absl::OkStatus());
    ExpectTrains("--mock-data --train-iters 3 --load full --save full");
  }
}

}  // namespace
}  // namespace forerun
