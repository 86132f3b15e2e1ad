// SPDX-License-Identifier: Apache-2.0
// Runs the tool as a user does.
#include "checkpoint/checkpoint.h"

#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "checkpoint/safetensors.h"
#include "core/base/output_file.h"
#include "core/tensor/host_tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "trainer/arguments.h"
#include "trainer/training_loop.h"

namespace forerun {
namespace {

using testing::HasSubstr;

constexpr char kIn3d[] =
    "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --world-size 8 "
    "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather ";
constexpr char kModel[] =
    "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --micro-batch-size 1 "
    "--lr 1e-3 --lr-decay-iters 100 --eval-iters 0 --threads-per-rank 1 --mock-data ";

std::string PathOf(absl::string_view name) { return absl::StrCat(testing::TempDir(), "/", name); }

void Train(absl::string_view flags) {
  const std::vector<std::string> args =
      absl::StrSplit(absl::StrCat(kModel, flags), ' ', absl::SkipEmpty());
  const absl::StatusOr<Arguments> arguments = ParseArguments(args);
  ASSERT_TRUE(arguments.ok()) << arguments.status();
  ASSERT_EQ(TrainWithThreads(*arguments, {}), absl::OkStatus());
}

struct Result {
  int exit_code;
  std::string output;  // of both streams
};

// Runs a tool in the test's folder, which it is told of as `bazel run` does.
Result RunTool(absl::string_view tool, absl::string_view flags) {
  const std::string command = absl::StrCat("BUILD_WORKING_DIRECTORY='", testing::TempDir(),
                                           "' tools/", tool, " ", flags, " 2>&1");
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) output.push_back(static_cast<char>(c));
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}
Result Tool(absl::string_view flags) { return RunTool("checkpoint", flags); }

std::string OutputOf(absl::string_view flags) {
  const Result result = Tool(flags);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  return result.output;
}

// An exported file beside the checkpoint it came from.
class Exported {
 public:
  explicit Exported(const std::string& folder)
      : checkpoint_(Checkpoint::Open(PathOf(folder)).value()) {
    said_ = OutputOf(absl::StrCat("export ", folder, " --output ", folder, ".safetensors"));
    file_ = SafetensorsReader::Open(PathOf(folder + ".safetensors")).value();
  }

  const std::string& said() const { return said_; }
  size_t tensors() const { return file_->tensors().size(); }
  bool has(const std::string& key) const { return file_->Find(key) != nullptr; }

  // Whether element (i, j) of a tensor of shape `shape` is element place(i, j) of ours, row-major.
  template <typename Place>
  void Expect(const std::string& key, const Shape& shape, const std::string& ours, Place&& place) {
    const SafetensorsReader::Values* values = file_->Find(key);
    ASSERT_NE(values, nullptr) << key;
    ASSERT_EQ(values->shape, shape) << key;
    const Tensor whole = Whole(ours);
    const auto* theirs = reinterpret_cast<const float*>(values->bytes.data());
    const int64_t columns = shape.rank() == 1 ? 1 : shape[1];
    for (int64_t i = 0; i < shape.numel(); ++i) {
      ASSERT_EQ(theirs[i], whole.data<float>()[place(i / columns, i % columns)]) << key << " " << i;
    }
  }

 private:
  Tensor Whole(const std::string& name) {
    for (const SavedTensor& tensor : checkpoint_->tensors()) {
      if (tensor.name != name) continue;
      const Tensor values = HostTensor({tensor.shape.numel()}, tensor.dtype);
      EXPECT_EQ(checkpoint_->LoadPiece({name, tensor.shape, Box::Whole(tensor.shape), 0, values}),
                absl::OkStatus());
      return values;
    }
    ADD_FAILURE() << name;
    return {};
  }

  const std::unique_ptr<Checkpoint> checkpoint_;
  std::shared_ptr<const SafetensorsReader> file_;
  std::string said_;
};

TEST(CheckpointTool, ExportsAGpt2AsHuggingFaceHasIt) {
  Train(absl::StrCat(kIn3d, "--train-iters 2 --save ", PathOf("gpt2")));
  Exported file("gpt2");
  EXPECT_THAT(file.said(), HasSubstr("GPT-2"));
  EXPECT_EQ(file.tensors(), 2u + 2u * 12u + 2u);
  EXPECT_FALSE(file.has("lm_head.weight"));  // tied
  file.Expect("transformer.wte.weight", {257, 32}, "embedding.word_embeddings.weight",
              [](int64_t i, int64_t j) { return i * 32 + j; });
  // [in, q k v of all heads]; ours are rows q, k, v of each head, 8 of each.
  const auto fused_row = [](int64_t column) {
    const int64_t part = column / 32, head = column % 32 / 8, row = column % 8;
    return (head * 3 + part) * 8 + row;
  };
  file.Expect("transformer.h.1.attn.c_attn.weight", {32, 96}, "layers.1.attention.qkv.weight",
              [&](int64_t i, int64_t j) { return fused_row(j) * 32 + i; });
  file.Expect("transformer.h.0.attn.c_attn.bias", {96}, "layers.0.attention.qkv.bias",
              [&](int64_t i, int64_t) { return fused_row(i); });
  file.Expect("transformer.h.0.mlp.c_fc.weight", {32, 128}, "layers.0.mlp.fc1.weight",
              [](int64_t i, int64_t j) { return j * 32 + i; });
  file.Expect("transformer.h.0.mlp.c_proj.weight", {128, 32}, "layers.0.mlp.fc2.weight",
              [](int64_t i, int64_t j) { return j * 128 + i; });
  file.Expect("transformer.ln_f.bias", {32}, "final_norm.bias",
              [](int64_t i, int64_t) { return i; });
}

TEST(CheckpointTool, ExportsALlamaAsHuggingFaceHasIt) {
  Train(absl::StrCat(kIn3d, "--train-iters 2 --save ", PathOf("llama"),
                     " --position-embedding-type rope --normalization RMSNorm "
                     "--swiglu --disable-bias-linear --group-query-attention --num-query-groups 2 "
                     "--untie-embeddings-and-output-weights --ffn-hidden-size 48"));
  Exported file("llama");
  EXPECT_THAT(file.said(), HasSubstr("Llama"));
  EXPECT_EQ(file.tensors(), 1u + 2u * 9u + 2u);
  // Ours: of each of two groups 16 rows of queries, 8 of a key, 8 of a value.
  const std::string qkv = "layers.1.attention.qkv.weight", attention = "model.layers.1.self_attn.";
  file.Expect(attention + "q_proj.weight", {32, 32}, qkv,
              [](int64_t i, int64_t j) { return (i / 16 * 32 + i % 16) * 32 + j; });
  file.Expect(attention + "k_proj.weight", {16, 32}, qkv,
              [](int64_t i, int64_t j) { return (i / 8 * 32 + 16 + i % 8) * 32 + j; });
  file.Expect(attention + "v_proj.weight", {16, 32}, qkv,
              [](int64_t i, int64_t j) { return (i / 8 * 32 + 24 + i % 8) * 32 + j; });
  const auto same = [](int64_t i, int64_t j) { return i * 32 + j; };
  file.Expect("model.layers.0.mlp.gate_proj.weight", {48, 32}, "layers.0.mlp.fc1.weight", same);
  file.Expect("model.layers.0.mlp.up_proj.weight", {48, 32}, "layers.0.mlp.fc1.weight",
              [&](int64_t i, int64_t j) { return same(48 + i, j); });
  file.Expect("lm_head.weight", {257, 32}, "output.weight", same);
}

TEST(CheckpointTool, ListsAndVerifiesAndNamesWhatIsWrong) {
  Train(absl::StrCat(kIn3d, "--train-iters 1 --save ", PathOf("looked_at")));
  const std::string list = OutputOf("ls looked_at");
  for (const char* what : {"iteration 1", "tp=2 pp=2 dp=2", "embedding.word_embeddings.weight",
                           "[257, 32]", "optimizer.exp_avg.layers.1.mlp.fc1.weight"}) {
    EXPECT_THAT(list, HasSubstr(what));
  }
  OutputOf("verify looked_at");
  const std::string path = PathOf("looked_at/iter_0000001/rank_00005.safetensors");
  std::string bytes = ReadFile(path).value();
  bytes[bytes.size() - 10] ^= 4;
  ASSERT_TRUE(WriteFile(path, bytes).ok());
  Result result = Tool("verify looked_at");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("rank_00005.safetensors is corrupt"));
  std::filesystem::remove(path);
  result = Tool("verify looked_at");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("there is no file"));
  EXPECT_EQ(Tool("ls nowhere").exit_code, 1);
  EXPECT_EQ(Tool("ponder looked_at").exit_code, 1);
}

// The vocabulary is padded, differently in either layout.
TEST(Generate, ContinuesATextWithACheckpointOfAnyLayout) {
  Train(absl::StrCat(kIn3d, "--train-iters 1 --save ", PathOf("fluent")));
  const Result result = RunTool("generate", "--load fluent --prompt 'ab c' --num-tokens 3");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_EQ(result.output.substr(0, 4), "ab c");
  EXPECT_EQ(RunTool("generate", "--load fluent --top-k 0").output,
            "generate: --top-k 0 is not at least 1\n");
  EXPECT_EQ(RunTool("generate", "--load ''").output, "generate: --load has an empty value\n");
}

}  // namespace
}  // namespace forerun
