// SPDX-License-Identifier: Apache-2.0
#include "trainer/model_setup.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/tensor/dtype.h"
#include "data/indexed_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::HasSubstr;

Arguments Parse(absl::string_view flags) {
  const std::vector<std::string> args = absl::StrSplit(
      absl::StrCat("--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32 "
                   "--micro-batch-size 1 --train-iters 10 --lr 1e-3 --mock-data ",
                   flags),
      ' ', absl::SkipEmpty());
  const absl::StatusOr<Arguments> arguments = ParseArguments(args);
  EXPECT_TRUE(arguments.ok()) << arguments.status();
  return arguments.ok() ? *arguments : Arguments{};
}

TEST(ConfigOf, AGptOfTheFlags) {
  const absl::StatusOr<GptConfig> config = ConfigOf(
      Parse("--tensor-model-parallel-size 2 --group-query-attention --num-query-groups 2 --swiglu "
            "--normalization RMSNorm --position-embedding-type rope --disable-bias-linear --bf16"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->vocab_size, 257);  // the byte tokenizer's
  EXPECT_EQ(config->padded_vocab_size, 512);
  EXPECT_EQ(config->num_query_groups, 2);
  EXPECT_TRUE(config->swiglu);
  EXPECT_TRUE(config->tied_embeddings);
  EXPECT_FALSE(config->add_bias_linear);
  EXPECT_EQ(config->norm, NormKind::kRmsNorm);
  EXPECT_EQ(config->position_embedding, PositionEmbedding::kRope);
  EXPECT_EQ(config->dtype, DType::kBF16);
}

TEST(ConfigOf, WhatDoesNotDivideIsNamed) {
  const auto message = [](absl::string_view flags) {
    return std::string(ConfigOf(Parse(flags)).status().message());
  };
  EXPECT_THAT(message("--tensor-model-parallel-size 3"), HasSubstr("num_attention_heads 4"));
  EXPECT_THAT(message("--num-attention-heads 5"),
              HasSubstr("hidden_size 64 is not a multiple of num_attention_heads 5"));
  EXPECT_THAT(message("--group-query-attention --num-query-groups 1 "
                      "--tensor-model-parallel-size 2"),
              HasSubstr("num_query_groups 1"));
  EXPECT_THAT(message("--tokenizer-type Foo"), HasSubstr("Foo"));
}

TEST(OpenDatasets, ACorpusIsSplitAndAMissingOneNamed) {
  const std::string prefix = absl::StrCat(testing::TempDir(), "/corpus");
  Arguments arguments = Parse("");
  arguments.data.mock_data = false;
  arguments.data.blend.prefixes = {prefix};
  const GptConfig config = *ConfigOf(arguments);
  EXPECT_THAT(std::string(OpenDatasets(arguments, config).status().message()), HasSubstr(prefix));

  const auto writer = *IndexedDatasetWriter::Create(prefix, TokenType::kUint16);
  for (int document = 0; document < 100; ++document) {
    ASSERT_TRUE(writer->AddSequence(std::vector<int32_t>(40, document)).ok());
    writer->EndDocument();
  }
  ASSERT_TRUE(writer->Publish().ok());
  arguments.data.split = "90,10,0";
  const absl::StatusOr<Datasets> both = OpenDatasets(arguments, config);
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_NE(both->valid, nullptr);
  arguments.data.split = "1,0,0";
  const absl::StatusOr<Datasets> only = OpenDatasets(arguments, config);
  ASSERT_TRUE(only.ok()) << only.status();
  EXPECT_EQ(only->valid, nullptr);
}

TEST(ModelMetadata, BuildsTheSameModelAgain) {
  const GptConfig config =
      *ConfigOf(Parse("--swiglu --normalization RMSNorm --position-embedding-type rope --bf16"));
  const auto metadata = ModelMetadata(config, "ByteTokenizer");
  const absl::StatusOr<GptConfig> again = ConfigFromMetadata(metadata);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ModelMetadata(*again, "ByteTokenizer"), metadata);
}

TEST(ModelMetadata, AnEntryThatIsMissingIsNamed) {
  auto metadata = ModelMetadata(*ConfigOf(Parse("")), "ByteTokenizer");
  metadata.erase("hidden_size");
  EXPECT_EQ(ConfigFromMetadata(metadata).status().message(),
            "the checkpoint does not say hidden_size of its model");
}

TEST(CheckSameModel, TheFirstDifferenceIsNamed) {
  const auto saved = ModelMetadata(*ConfigOf(Parse("")), "ByteTokenizer");
  EXPECT_TRUE(CheckSameModel(saved, saved).ok());
  const auto wider =
      ModelMetadata(*ConfigOf(Parse("--hidden-size 128 --ffn-hidden-size 256")), "ByteTokenizer");
  EXPECT_EQ(CheckSameModel(saved, wider).message(),
            "the checkpoint's model has hidden_size 64, this run's has 128");
  // Precision and sample length may change between runs.
  EXPECT_TRUE(CheckSameModel(saved, ModelMetadata(*ConfigOf(Parse("--bf16")), "")).ok());
}

}  // namespace
}  // namespace forerun
