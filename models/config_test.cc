// SPDX-License-Identifier: Apache-2.0
#include "models/config.h"

#include "gtest/gtest.h"
#include "models/gpt2.h"
#include "models/llama.h"

namespace forerun {
namespace {

TEST(GptConfig, PresetsAreValidAndSplit) {
  for (const GptConfig& config : {TinyGpt2(), Gpt2_124M(), TinyLlama()}) {
    EXPECT_TRUE(config.Validate().ok()) << config.Validate();
    EXPECT_TRUE(config.ValidateSplit(2, 2).ok()) << config.ValidateSplit(2, 2);
  }
}

TEST(GptConfig, ValidateNamesWhatIsWrong) {
  GptConfig config = TinyGpt2();
  config.num_layers = 0;
  EXPECT_EQ(config.Validate().message(), "num_layers must be at least 1, got 0");
  config = TinyGpt2();
  config.num_attention_heads = 5;
  EXPECT_EQ(config.Validate().message(),
            "hidden_size 64 is not a multiple of num_attention_heads 5");
  config = TinyGpt2();
  config.num_query_groups = 3;
  EXPECT_EQ(config.Validate().message(),
            "num_attention_heads 4 is not a multiple of num_query_groups 3");
  config = TinyGpt2();
  config.seq_length = 33;
  EXPECT_EQ(config.Validate().message(), "max_position_embeddings 32 is less than seq_length 33");
  config = TinyGpt2();
  config.padded_vocab_size = 127;
  EXPECT_EQ(config.Validate().message(), "padded_vocab_size 127 is less than vocab_size 128");
  config = TinyGpt2();
  config.hidden_dropout = 1.0f;
  EXPECT_EQ(config.Validate().message(), "hidden_dropout must be in [0, 1), got 1");
}

TEST(GptConfig, ValidateSplitNamesWhatCannotBeSplit) {
  EXPECT_EQ(TinyGpt2().ValidateSplit(0, 1).message(),
            "tensor-parallel size must be at least 1, got 0");
  EXPECT_EQ(TinyGpt2().ValidateSplit(8, 1).message(),
            "num_attention_heads 4 is not divisible by tensor-parallel size 8");
  EXPECT_EQ(TinyLlama().ValidateSplit(4, 1).message(),
            "num_query_groups 2 is not divisible by tensor-parallel size 4");
  EXPECT_EQ(TinyLlama().ValidateSplit(1, 3).message(),
            "2 layers cannot be split over 3 pipeline stages: each needs one");
  GptConfig config = TinyGpt2();
  config.padded_vocab_size = 129;
  EXPECT_EQ(config.ValidateSplit(2, 1).message(),
            "padded_vocab_size 129 is not divisible by tensor-parallel size 2");
}

TEST(GptConfig, ParameterCountIsThePublishedOne) {
  EXPECT_EQ(Gpt2_124M().ParameterCount(), 124439808);
}

TEST(PaddedVocabSize, IsTheNextMultiple) {
  EXPECT_EQ(PaddedVocabSize(50257, 128, 1), 50304);
  EXPECT_EQ(PaddedVocabSize(50257, 128, 2), 50432);
  EXPECT_EQ(PaddedVocabSize(128, 128, 1), 128);
}

TEST(LayersOfStage, EveryLayerLiesInExactlyOneStage) {
  for (int layers = 1; layers <= 13; ++layers) {
    for (int stages = 1; stages <= layers; ++stages) {
      int next = 0;
      int last_size = layers;
      for (int stage = 0; stage < stages; ++stage) {
        const LayerRange range = LayersOfStage(layers, stages, stage).value();
        EXPECT_EQ(range.begin, next);
        EXPECT_GE(range.size(), layers / stages);
        EXPECT_LE(range.size(), last_size) << "the first stages have one more";
        last_size = range.size();
        next = range.end;
      }
      EXPECT_EQ(next, layers);
    }
  }
}

// Megatron-LM 1304: 30 layers over four stages are 30 layers, not 28.
TEST(LayersOfStage, ThirtyLayersOverFourStages) {
  EXPECT_EQ(LayersOfStage(30, 4, 0).value(), (LayerRange{0, 8}));
  EXPECT_EQ(LayersOfStage(30, 4, 1).value(), (LayerRange{8, 16}));
  EXPECT_EQ(LayersOfStage(30, 4, 2).value(), (LayerRange{16, 23}));
  EXPECT_EQ(LayersOfStage(30, 4, 3).value(), (LayerRange{23, 30}));
}

TEST(LayersOfStage, TheEndsHoldWhatTheyAskFor) {
  EXPECT_EQ(LayersOfStage(12, 2, 0, {.last = 3}).value(), (LayerRange{0, 9}));
  EXPECT_EQ(LayersOfStage(12, 2, 1, {.last = 3}).value(), (LayerRange{9, 12}));
  EXPECT_EQ(LayersOfStage(12, 4, 0, {.first = 2, .last = 1}).value(), (LayerRange{0, 2}));
  EXPECT_EQ(LayersOfStage(12, 4, 1, {.first = 2, .last = 1}).value(), (LayerRange{2, 7}));
  EXPECT_EQ(LayersOfStage(12, 4, 2, {.first = 2, .last = 1}).value(), (LayerRange{7, 11}));
  EXPECT_EQ(LayersOfStage(12, 4, 3, {.first = 2, .last = 1}).value(), (LayerRange{11, 12}));
  EXPECT_EQ(LayersOfStage(5, 1, 0, {.first = 5}).value(), (LayerRange{0, 5}));
}

TEST(LayersOfStage, RefusesEndsThatLeaveTooFewOrTooMany) {
  for (const EndStages& ends : {EndStages{12, 0}, EndStages{13, 0}, EndStages{6, 5}}) {
    EXPECT_FALSE(LayersOfStage(12, 2, 0, ends).ok()) << ends.first << " and " << ends.last;
  }
  EXPECT_EQ(
      LayersOfStage(12, 3, 0, {.first = 6, .last = 6}).status().message(),
      "12 layers cannot be split over 3 pipeline stages with 6 in the first and 6 in the last "
      "(0: any)");
}

TEST(LayersOfStage, RefusesAStageWithoutALayer) {
  EXPECT_EQ(LayersOfStage(2, 3, 0).status().message(),
            "2 layers cannot be split over 3 pipeline stages: each needs one");
  EXPECT_EQ(LayersOfStage(4, 2, 2).status().message(), "there is no pipeline stage 2 of 2");
}

}  // namespace
}  // namespace forerun
