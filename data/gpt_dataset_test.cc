// SPDX-License-Identifier: Apache-2.0
#include "data/gpt_dataset.h"

#include <algorithm>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::HasSubstr;

using Documents = std::vector<std::vector<std::vector<int32_t>>>;  // of sequences of tokens

std::shared_ptr<const IndexedDataset> Write(const Documents& documents) {
  const std::string prefix = testing::TempDir() + "/corpus";
  auto writer = IndexedDatasetWriter::Create(prefix, TokenType::kUint16);
  EXPECT_TRUE(writer.ok());
  for (const auto& document : documents) {
    for (const auto& sequence : document) EXPECT_TRUE((*writer)->AddSequence(sequence).ok());
    (*writer)->EndDocument();
  }
  EXPECT_TRUE((*writer)->Publish().ok());
  return *IndexedDataset::Open(prefix);
}

// 40 documents of uneven sequences, empty ones among them; tokens count up from 0.
Documents Counting() {
  Documents documents(40);
  int32_t token = 0;
  for (int d = 0; d < 40; ++d) {
    for (int s = 0; s < d % 3; ++s) {
      std::vector<int32_t> sequence(static_cast<size_t>((d * 7 + s * 5) % 11));
      for (int32_t& t : sequence) t = token++;
      documents[d].push_back(sequence);
    }
  }
  return documents;
}

std::vector<int32_t> Stream(const Documents& documents, int64_t begin, int64_t end) {
  std::vector<int32_t> stream;
  for (int64_t d = begin; d < end; ++d) {
    for (const auto& sequence : documents[d]) {
      stream.insert(stream.end(), sequence.begin(), sequence.end());
    }
  }
  return stream;
}

std::vector<int32_t> Sample(const Dataset& dataset, int64_t index) {
  std::vector<int32_t> tokens(static_cast<size_t>(dataset.seq_length()) + 1);
  const absl::Status status = dataset.Get(index, absl::MakeSpan(tokens));
  EXPECT_TRUE(status.ok()) << status;
  return tokens;
}

TEST(GptDataset, AnEpochIsTheStreamsPiecesEachOnce) {
  const Documents documents = Counting();
  const auto corpus = Write(documents);
  const Split split = *Split::Parse("7,2,1");
  for (const SplitPart part : {SplitPart::kTrain, SplitPart::kValid, SplitPart::kTest}) {
    const DocumentRange range = split.Documents(part, 40);
    const std::vector<int32_t> stream = Stream(documents, range.begin, range.end);
    for (const int64_t s : {1, 3, 8}) {
      std::set<std::vector<int32_t>> expected;
      for (size_t at = 0; at + s < stream.size(); at += s) {
        expected.insert({stream.begin() + at, stream.begin() + at + s + 1});
      }
      const auto dataset =
          GptDataset::Create(corpus, split, {.seq_length = s, .vocab_size = 1000, .part = part});
      ASSERT_TRUE(dataset.ok()) << dataset.status();
      const int64_t size = (*dataset)->size();
      ASSERT_EQ(size, (static_cast<int64_t>(stream.size()) - 1) / s);
      for (int64_t epoch = 0; epoch < 3; ++epoch) {
        std::set<std::vector<int32_t>> seen;
        for (int64_t i = 0; i < size; ++i) seen.insert(Sample(**dataset, epoch * size + i));
        EXPECT_EQ(seen, expected) << NameOf(part) << " " << s;
      }
    }
  }
}

TEST(GptDataset, OrderDependsOnSeedEpochAndPartAndOnNothingElse) {
  const auto corpus = Write(Counting());
  const auto order = [&](uint64_t seed, int64_t epoch, SplitPart part) {
    const auto dataset =
        *GptDataset::Create(corpus, *Split::Parse("1,1"),
                            {.seq_length = 2, .vocab_size = 1000, .seed = seed, .part = part});
    // Sizes differ between the parts; the first samples, counted from the part's first token, tell.
    int32_t first = INT32_MAX;
    std::vector<int32_t> starts;
    for (int64_t i = 0; i < dataset->size(); ++i) {
      starts.push_back(Sample(*dataset, epoch * dataset->size() + i)[0]);
      first = std::min(first, starts.back());
    }
    for (int32_t& start : starts) start -= first;
    return starts;
  };
  const auto base = order(1, 0, SplitPart::kTrain);
  EXPECT_EQ(order(1, 0, SplitPart::kTrain), base);
  EXPECT_NE(order(2, 0, SplitPart::kTrain), base);
  EXPECT_NE(order(1, 1, SplitPart::kTrain), base);
  EXPECT_NE(order(1, 0, SplitPart::kValid), base);
}

TEST(GptDataset, APartWithoutAWholeSampleIsAnErrorThatSaysHowMuchThereIs) {
  const auto corpus = Write({{{1, 2, 3, 4}}, {{5, 6, 7}}});
  const Split split = *Split::Parse("1,1,0");
  EXPECT_TRUE(GptDataset::Create(corpus, split, {.seq_length = 3, .vocab_size = 9}).ok());
  const auto valid = GptDataset::Create(
      corpus, split, {.seq_length = 3, .vocab_size = 9, .part = SplitPart::kValid});
  EXPECT_EQ(valid.status().message(),
            "the valid split of " + corpus->prefix() +
                " has 1 documents with 3 tokens, and one sample takes 3 + 1");
  const auto test = GptDataset::Create(
      corpus, split, {.seq_length = 3, .vocab_size = 9, .part = SplitPart::kTest});
  EXPECT_THAT(std::string(test.status().message()), HasSubstr("has 0 documents with 0 tokens"));
}

TEST(GptDataset, ATokenOutsideTheVocabularyIsAnError) {
  const auto corpus = Write({{{1, 2, 300}}});
  const auto dataset =
      GptDataset::Create(corpus, *Split::Parse("1"), {.seq_length = 2, .vocab_size = 257});
  ASSERT_TRUE(dataset.ok());
  std::vector<int32_t> tokens(3);
  EXPECT_THAT(std::string((*dataset)->Get(0, absl::MakeSpan(tokens)).message()),
              HasSubstr("token 300, outside the vocabulary of 257"));
}

}  // namespace
}  // namespace forerun
