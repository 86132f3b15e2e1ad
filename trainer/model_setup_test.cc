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
  arguments.data.split = "999,1,0";
  EXPECT_THAT(std::string(OpenDatasets(arguments, config).status().message()),
              HasSubstr("; --eval-iters 0 does without it"));
  arguments.training.eval_iters = 0;
  EXPECT_TRUE(OpenDatasets(arguments, config).ok());
}

Metadata MetadataOf(const Arguments& arguments) {
  return ModelMetadata(arguments, ConfigOf(arguments)->vocab_size);
}

TEST(ModelMetadata, BuildsTheSameModelAgain) {
  const Arguments arguments = Parse(
      "--swiglu --normalization RMSNorm --position-embedding-type rope --bf16 --norm-epsilon 1e-6 "
      "--group-query-attention --num-query-groups 2 --tensor-model-parallel-size 2");
  const Metadata metadata = MetadataOf(arguments);
  Arguments again;
  ASSERT_EQ(TakeModel(metadata, again), absl::OkStatus());
  EXPECT_EQ(MetadataOf(again), metadata);
  const absl::StatusOr<GptConfig> config = ConfigFromMetadata(metadata);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->vocab_size, 257);
  EXPECT_EQ(config->padded_vocab_size, 384);  // of one rank
  EXPECT_EQ(config->num_query_groups, 2);
  EXPECT_EQ(config->norm_epsilon, 1e-6f);
  EXPECT_EQ(config->dtype, DType::kBF16);
}

// Its flag is the number of ids in a text, one less than the model knows.
TEST(ModelMetadata, TheNullTokenizersVocabularyIsTheSameAgain) {
  const Arguments arguments = Parse("--tokenizer-type NullTokenizer --vocab-size 50");
  EXPECT_EQ(ConfigOf(arguments)->vocab_size, 51);
  Arguments again;
  ASSERT_EQ(TakeModel(MetadataOf(arguments), again), absl::OkStatus());
  EXPECT_EQ(again.model.vocab_size, 50);
  EXPECT_EQ(ConfigFromMetadata(MetadataOf(arguments))->vocab_size, 51);
}

TEST(ModelMetadata, AnEntryThatIsMissingOrMalformedIsNamed) {
  Metadata metadata = MetadataOf(Parse(""));
  metadata["swiglu"] = "perhaps";
  EXPECT_EQ(ConfigFromMetadata(metadata).status().message(), "the checkpoint does not say swiglu");
  metadata.erase("hidden_size");
  EXPECT_EQ(ConfigFromMetadata(metadata).status().message(),
            "the checkpoint does not say hidden_size");
}

TEST(CheckSameModel, TheFirstDifferenceIsNamed) {
  const Metadata saved = MetadataOf(Parse(""));
  EXPECT_TRUE(CheckSameModel(saved, saved).ok());
  const Metadata wider = MetadataOf(Parse("--hidden-size 128 --ffn-hidden-size 256"));
  EXPECT_EQ(CheckSameModel(saved, wider).message(),
            "the checkpoint's model has --hidden-size 64, this run's has 128");
  // Precision, dropout and sample length may change between runs, and so does padding.
  const Metadata similar =
      MetadataOf(Parse("--bf16 --hidden-dropout 0 --tensor-model-parallel-size 2"));
  EXPECT_EQ(CheckSameModel(saved, similar), absl::OkStatus());
}

TEST(CheckSameSchedule, TheFirstDifferenceIsNamedWithWhatDecides) {
  const Arguments arguments = Parse("--lr-decay-style cosine --min-lr 1e-5");
  const Metadata saved = ScheduleMetadata(arguments.training);
  EXPECT_EQ(CheckSameSchedule(saved, arguments.training), absl::OkStatus());
  TrainingArguments other = arguments.training;
  other.lr = 0.1 + 0.2;
  EXPECT_EQ(CheckSameSchedule(saved, other).message(),
            "the checkpoint was trained with --lr 0.001, this run has 0.30000000000000004; "
            "--use-checkpoint-opt_param-scheduler takes the checkpoint's schedule, "
            "--override-opt_param-scheduler this run's");
  ASSERT_EQ(TakeSchedule(saved, other), absl::OkStatus());
  EXPECT_EQ(ScheduleMetadata(other), saved);
}

}  // namespace
}  // namespace forerun
