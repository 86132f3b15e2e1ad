// SPDX-License-Identifier: Apache-2.0
// Also Megatron-LM 705 and 697: weights 0.001 and 0.999 over 10 and 1000 documents, 3 epochs; an
// index ran out of range, and shares were off.
#include "data/blended_dataset.h"

#include <map>
#include <string>

#include "data/cyclic_dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kLength = 8;

// Documents of one sample each; the tokens of document d are first + d.
std::string WriteCorpus(const std::string& name, int documents, int32_t first) {
  const std::string prefix = testing::TempDir() + "/" + name;
  const auto writer = IndexedDatasetWriter::Create(prefix, TokenType::kUint16);
  EXPECT_TRUE(writer.ok()) << writer.status();
  for (int32_t d = 0; d < documents; ++d) {
    EXPECT_TRUE((*writer)->AddSequence(std::vector<int32_t>(kLength, first + d)).ok());
    (*writer)->EndDocument();
  }
  EXPECT_TRUE((*writer)->Publish().ok());
  return prefix;
}

absl::StatusOr<std::shared_ptr<const Dataset>> Part(const BlendSpec& spec, const char* split,
                                                    SplitPart part) {
  const auto blend = CorpusBlend::Open(spec);
  if (!blend.ok()) return blend.status();
  return blend->Part(*Split::Parse(split),
                     {.seq_length = kLength, .vocab_size = 5000, .seed = 7, .part = part});
}

// Which document sample `index` starts in, by its first token.
int32_t DocumentOf(const Dataset& dataset, int64_t index) {
  std::vector<int32_t> tokens(kLength + 1);
  const absl::Status status = dataset.Get(index, absl::MakeSpan(tokens));
  EXPECT_TRUE(status.ok()) << status;
  return tokens[0];
}

std::map<int32_t, int> Counts(const Dataset& dataset, int64_t begin, int64_t end) {
  std::map<int32_t, int> counts;
  for (int64_t i = begin; i < end; ++i) ++counts[DocumentOf(dataset, i)];
  return counts;
}

BlendSpec SmallAndLarge(std::vector<double> weights) {
  return {{WriteCorpus("small", 10, 0), WriteCorpus("large", 1000, 1000)}, std::move(weights)};
}

TEST(Blend, Megatron705UnevenWeightsOver3EpochsStayInRangeAndInProportion) {
  const auto dataset = *Part(SmallAndLarge({0.001, 0.999}), "1", SplitPart::kTrain);
  const int64_t samples = 3 * dataset->size();
  int64_t small = 0;
  for (int64_t i = 0; i < samples; ++i) {
    small += DocumentOf(*dataset, i) < 1000;
    ASSERT_NEAR(static_cast<double>(small), 0.001 * static_cast<double>(i + 1), 1.0);
  }
  EXPECT_EQ(small, 3);
}

TEST(Blend, TheSmallCorpusGoesThroughManyEpochsWhereItsWeightAsksForIt) {
  const auto dataset = *Part(SmallAndLarge({0.999, 0.001}), "1", SplitPart::kTrain);
  // The stream of 10 documents of 8 tokens has 9 samples: 9 epochs of them.
  const std::map<int32_t, int> counts = Counts(*dataset, 0, 81);
  for (int32_t d = 0; d < 9; ++d) EXPECT_EQ(counts.at(d), 9) << d;
}

TEST(Blend, WithoutWeightsAnEpochIsEverySampleOnceInAnOrderOfItsOwn) {
  const auto dataset = *Part(SmallAndLarge({}), "1", SplitPart::kTrain);
  ASSERT_EQ(dataset->size(), 9 + 999);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const auto counts = Counts(*dataset, epoch * 1008, (epoch + 1) * 1008);
    EXPECT_EQ(counts.size(), 1008u) << "epoch " << epoch;
  }
  EXPECT_NE(DocumentOf(*dataset, 0), DocumentOf(*dataset, 1008));
}

TEST(Blend, EveryCorpusIsSplitAlike) {
  const BlendSpec spec = SmallAndLarge({1.0, 1.0});
  const auto train = Counts(**Part(spec, "8,2", SplitPart::kTrain), 0, 2000);
  const auto valid = Counts(**Part(spec, "8,2", SplitPart::kValid), 0, 2000);
  for (const auto& [document, unused] : valid) {
    EXPECT_EQ(train.count(document), 0u) << document;
    EXPECT_EQ(document < 1000 ? document >= 8 : document >= 1800, true) << document;
  }
  EXPECT_EQ(valid.begin()->first, 8);
}

TEST(Blend, ACorpusTooSmallForAPartIsLeftOutOfItButNotOfTraining) {
  // 1 % of 10 documents is none.
  const auto valid = Part(SmallAndLarge({0.5, 0.5}), "99,1", SplitPart::kValid);
  ASSERT_TRUE(valid.ok()) << valid.status();
  for (const auto& [document, unused] : Counts(**valid, 0, 30)) EXPECT_GE(document, 1990);
  const auto test = Part(SmallAndLarge({0.5, 0.5}), "99,1", SplitPart::kTest);
  EXPECT_THAT(std::string(test.status().message()), HasSubstr("the test split of"));
  const auto train = Part(SmallAndLarge({0.5, 0.5}), "1,99", SplitPart::kTrain);
  EXPECT_THAT(std::string(train.status().message()), HasSubstr("/small has 0 documents"));
  EXPECT_THAT(std::string(Part({{"absent"}, {}}, "1", SplitPart::kTrain).status().message()),
              HasSubstr("absent.idx"));
}

TEST(Cyclic, DrawsTheOrderOfEveryEpochAnew) {
  const auto blend = *Part(SmallAndLarge({}), "1", SplitPart::kTrain);
  const CyclicDataset cyclic(blend, 1), again(blend, 1), other(blend, 2);
  EXPECT_EQ(Counts(cyclic, 0, 1008), Counts(*blend, 0, 1008));
  EXPECT_EQ(Counts(cyclic, 1008, 2016), Counts(*blend, 1008, 2016));
  std::vector<int32_t> first, same, second, seeded, plain;
  for (int64_t i = 0; i < 20; ++i) {
    first.push_back(DocumentOf(cyclic, i));
    same.push_back(DocumentOf(again, i));
    second.push_back(DocumentOf(cyclic, 1008 + i));
    seeded.push_back(DocumentOf(other, i));
    plain.push_back(DocumentOf(*blend, i));
  }
  EXPECT_EQ(first, same);
  EXPECT_NE(first, second);
  EXPECT_NE(first, seeded);
  EXPECT_NE(first, plain);
}

TEST(BlendSpec, ReadsPrefixesWithAndWithoutWeights) {
  const auto parse = [](const std::vector<std::string>& words) {
    return BlendSpec::Parse(words).value();
  };
  EXPECT_THAT(parse({"a"}).prefixes, ElementsAre("a"));
  EXPECT_THAT(parse({"a", "b"}).prefixes, ElementsAre("a", "b"));
  EXPECT_THAT(parse({"a", "b"}).weights, IsEmpty());
  EXPECT_THAT(parse({"1", "2", "3"}).prefixes, ElementsAre("1", "2", "3"));
  EXPECT_THAT(parse({"0.3", "a", "7e-1", "b"}).prefixes, ElementsAre("a", "b"));
  EXPECT_THAT(parse({"0.3", "a", "7e-1", "b"}).weights, ElementsAre(0.3, 0.7));
}

TEST(BlendSpec, AFaultyWeightIsNamed) {
  const auto error = [](const std::vector<std::string>& words) {
    return std::string(BlendSpec::Parse(words).status().message());
  };
  EXPECT_EQ(error({"0.3", "a", "x", "b"}),
            "--data-path: the weight 'x' of b is not a number above 0");
  EXPECT_THAT(error({"0", "a", "1", "b"}), HasSubstr("'0' of a"));
  EXPECT_THAT(error({"nan", "a", "1", "b"}), HasSubstr("'nan' of a"));
}

}  // namespace
}  // namespace forerun
