// SPDX-License-Identifier: Apache-2.0
// Runs the binary as a user does.
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/base/output_file.h"
#include "data/indexed_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

struct Result {
  int exit_code;
  std::string output;  // of both streams
};

// Runs it in the test's folder, which it is told of as `bazel run` does.
Result RunBinary(const std::string& flags) {
  const std::string command = absl::StrCat("BUILD_WORKING_DIRECTORY='", testing::TempDir(),
                                           "' tools/preprocess_data ", flags, " 2>&1");
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) output.push_back(static_cast<char>(c));
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

void Put(const std::string& name, const std::string& contents) {
  ASSERT_TRUE(WriteFile(absl::StrCat(testing::TempDir(), "/", name), contents).ok());
}

absl::StatusOr<std::shared_ptr<const IndexedDataset>> OpenOutput(const std::string& name) {
  return IndexedDataset::Open(absl::StrCat(testing::TempDir(), "/", name));
}

// Each sequence as text, its end-of-document token as '$'.
std::vector<std::string> Sequences(const IndexedDataset& dataset) {
  std::vector<std::string> sequences;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    std::vector<int32_t> tokens(static_cast<size_t>(dataset.length(i)));
    EXPECT_TRUE(dataset.Read(i, 0, absl::MakeSpan(tokens)).ok());
    std::string& text = sequences.emplace_back();
    for (const int32_t token : tokens)
      text.push_back(token == 256 ? '$' : static_cast<char>(token));
  }
  return sequences;
}

TEST(PreprocessData, TokenizesJsonLinesRelativeToTheUsersDirectory) {
  Put("in.jsonl", "{\"text\": \"ab\"}\n{\"text\": \"\"}\n{\"text\": \"c\"}\n");
  const Result result = RunBinary(
      "--input in.jsonl --output_prefix=out --tokenizer-type=ByteTokenizer --append_eod "
      "--dataset-impl mmap --workers 4");
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_THAT(result.output, HasSubstr("Processed 3 documents"));
  EXPECT_THAT(result.output, HasSubstr("Wrote 5 tokens to"));
  const auto dataset = OpenOutput("out_text_document");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(Sequences(**dataset), ElementsAre("ab$", "c$"));
  EXPECT_EQ((*dataset)->documents(), 3);  // the empty one has no sequence
  EXPECT_EQ((*dataset)->token_type(), TokenType::kUint16);
}

TEST(PreprocessData, TokenizesPlainText) {
  Put("in.txt", "ab\ncd\n\ne\n");
  ASSERT_EQ(RunBinary("--input in.txt --output-prefix plain").exit_code, 0);
  const auto dataset = OpenOutput("plain_text_document");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(Sequences(**dataset), ElementsAre("ab\ncd", "e"));
}

TEST(PreprocessData, EachKeyGetsItsOwnFiles) {
  Put("keys.jsonl", "{\"a\": \"1 2\", \"b\": \"3\"}\n");
  const Result result = RunBinary(
      "--input keys.jsonl --output-prefix keys --json-keys a b --tokenizer-type NullTokenizer "
      "--vocab-size 70000 --append-eod");
  ASSERT_EQ(result.exit_code, 0) << result.output;
  const auto a = OpenOutput("keys_a_document");
  const auto b = OpenOutput("keys_b_document");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ((*a)->token_type(), TokenType::kInt32);
  std::vector<int32_t> tokens(3);
  ASSERT_TRUE((*a)->Read(0, 0, absl::MakeSpan(tokens)).ok());
  EXPECT_THAT(tokens, ElementsAre(1, 2, 70000));
  EXPECT_EQ((*b)->length(0), 2);
}

TEST(PreprocessData, BadInputIsOneSentenceAndLeavesNoFiles) {
  Put("bad.jsonl", "{\"text\": \"ab\"}\nnonsense\n");
  const Result result = RunBinary("--input bad.jsonl --output-prefix bad");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.output, HasSubstr("bad.jsonl line 2 is not JSON"));
  EXPECT_EQ(std::count(result.output.begin(), result.output.end(), '\n'), 1) << result.output;
  EXPECT_FALSE(OpenOutput("bad_text_document").ok());
  Put("words.txt", "1 2\n\nx\n");
  EXPECT_THAT(RunBinary("--input words.txt --output-prefix w --tokenizer-type NullTokenizer "
                        "--vocab-size 9")
                  .output,
              HasSubstr("words.txt line 3: 'x' is not a token id"));
  Put("empty.txt", "\n");
  EXPECT_THAT(RunBinary("--input empty.txt --output-prefix e").output,
              HasSubstr("empty.txt has no documents"));
}

TEST(PreprocessData, BadFlagsAreNamedWithExitCodeOne) {
  const auto fails = [](const std::string& flags, const std::string& what) {
    const Result result = RunBinary(flags);
    EXPECT_EQ(result.exit_code, 1) << flags;
    EXPECT_THAT(result.output, HasSubstr(what)) << flags;
  };
  Put("f.txt", "a");
  fails("--output-prefix x", "--input is required");
  fails("--input missing.txt --output-prefix x", "there is no file");
  fails("--input f.txt --output-prefix ''", "--output-prefix has an empty value");
  fails("--input f.txt --output-prefix x --unknown", "--unknown");
  fails("--input f.txt --output-prefix x --dataset-impl lazy", "--dataset-impl");
  fails("--input f.txt --output-prefix x --tokenizer-type Foo", "there is no tokenizer 'Foo'");
  fails("--input f.txt --output-prefix x --json-keys a b", "is plain text");
  fails("--input f.txt --output-prefix nowhere/x", "nowhere/x_text_document.bin cannot be written");
}

TEST(PreprocessData, HelpSaysHowDocumentsAreSeparated) {
  const Result result = RunBinary("--help");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, AllOf(HasSubstr("blank lines separate"), HasSubstr("--append-eod"),
                                   Not(HasSubstr("_eod"))));
}

}  // namespace
}  // namespace forerun
