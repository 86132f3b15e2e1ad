// SPDX-License-Identifier: Apache-2.0
#include "data/indexed_dataset.h"

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/output_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::HasSubstr;

// Two documents of the sequences {1, 2, 3}, {4} and {515}, in uint16: written by hand from the
// format's description.
const std::string kGoldenIndex(
    "MMIDIDX\0\0"
    "\1\0\0\0\0\0\0\0"  // version
    "\10"               // uint16
    "\3\0\0\0\0\0\0\0"  // sequences
    "\3\0\0\0\0\0\0\0"  // entries of the document table
    "\3\0\0\0"
    "\1\0\0\0"
    "\1\0\0\0"  // lengths
    "\0\0\0\0\0\0\0\0"
    "\6\0\0\0\0\0\0\0"
    "\10\0\0\0\0\0\0\0"  // pointers
    "\0\0\0\0\0\0\0\0"
    "\2\0\0\0\0\0\0\0"
    "\3\0\0\0\0\0\0\0",  // documents
    9 + 8 + 1 + 8 + 8 + 12 + 24 + 24);
const std::string kGoldenTokens("\1\0\2\0\3\0\4\0\3\2", 10);

class IndexedDatasetTest : public testing::Test {
 protected:
  // Writes both files and opens them.
  absl::StatusOr<std::shared_ptr<const IndexedDataset>> OpenBytes(const std::string& index,
                                                                  const std::string& tokens) {
    // Without forcing them to the disk: these tests write many files.
    std::ofstream(prefix_ + ".idx", std::ios::binary) << index;
    std::ofstream(prefix_ + ".bin", std::ios::binary) << tokens;
    return IndexedDataset::Open(prefix_);
  }
  std::string Error(const std::string& index, const std::string& tokens = kGoldenTokens) {
    return std::string(OpenBytes(index, tokens).status().message());
  }
  std::string IndexWith(size_t at, const std::string& bytes) {
    return std::string(kGoldenIndex).replace(at, bytes.size(), bytes);
  }
  std::vector<int32_t> Sequence(const IndexedDataset& dataset, int64_t index) {
    std::vector<int32_t> tokens(static_cast<size_t>(dataset.length(index)));
    EXPECT_TRUE(dataset.Read(index, 0, absl::MakeSpan(tokens)).ok());
    return tokens;
  }

  const std::string prefix_ = absl::StrCat(
      testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(IndexedDatasetTest, WriterProducesTheGoldenBytes) {
  auto writer = IndexedDatasetWriter::Create(prefix_, TokenTypeFor(257));
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->AddSequence({1, 2, 3}).ok());
  ASSERT_TRUE((*writer)->AddSequence({4}).ok());
  (*writer)->EndDocument();
  ASSERT_TRUE((*writer)->AddSequence({515}).ok());
  (*writer)->EndDocument();
  EXPECT_EQ((*writer)->tokens(), 5);
  ASSERT_TRUE((*writer)->Publish().ok());
  EXPECT_EQ(*ReadFile(prefix_ + ".idx"), kGoldenIndex);
  EXPECT_EQ(*ReadFile(prefix_ + ".bin"), kGoldenTokens);
}

TEST_F(IndexedDatasetTest, ReaderUnderstandsTheGoldenBytes) {
  const auto dataset = OpenBytes(kGoldenIndex, kGoldenTokens);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const IndexedDataset& d = **dataset;
  EXPECT_EQ(d.size(), 3);
  EXPECT_EQ(d.documents(), 2);
  EXPECT_EQ(d.document_begin(1), 2);
  EXPECT_EQ(d.document_begin(2), 3);
  EXPECT_EQ(Sequence(d, 0), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(Sequence(d, 1), (std::vector<int32_t>{4}));
  EXPECT_EQ(Sequence(d, 2), (std::vector<int32_t>{515}));
  int32_t last = 0;
  ASSERT_TRUE(d.Read(0, 2, absl::MakeSpan(&last, 1)).ok());
  EXPECT_EQ(last, 3);
  EXPECT_DEATH(d.Read(0, 3, absl::MakeSpan(&last, 1)).IgnoreError(), "tokens 3 to 4 of 3");
  EXPECT_DEATH(d.length(3), "sequence 3 of 3");
}

TEST_F(IndexedDatasetTest, RoundTripsEveryTokenType) {
  for (const TokenType type : {TokenType::kUint8, TokenType::kInt8, TokenType::kInt16,
                               TokenType::kInt32, TokenType::kInt64, TokenType::kUint16}) {
    auto writer = IndexedDatasetWriter::Create(prefix_, type);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->AddSequence({0, 127}).ok());
    ASSERT_TRUE((*writer)->AddSequence({}).ok());
    ASSERT_TRUE((*writer)->AddSequence({5}).ok());
    (*writer)->EndDocument();
    ASSERT_TRUE((*writer)->Publish().ok());
    const auto dataset = IndexedDataset::Open(prefix_);
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_EQ((*dataset)->token_type(), type);
    EXPECT_EQ(Sequence(**dataset, 0), (std::vector<int32_t>{0, 127}));
    EXPECT_EQ(Sequence(**dataset, 1), (std::vector<int32_t>{}));
    EXPECT_EQ(Sequence(**dataset, 2), (std::vector<int32_t>{5}));
  }
}

TEST_F(IndexedDatasetTest, OldFilesStayUntilPublished) {
  ASSERT_TRUE(OpenBytes(kGoldenIndex, kGoldenTokens).ok());
  {
    auto writer = IndexedDatasetWriter::Create(prefix_, TokenType::kInt32);
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->AddSequence({9}).ok());
  }
  EXPECT_EQ(*ReadFile(prefix_ + ".idx"), kGoldenIndex);
  EXPECT_EQ(*ReadFile(prefix_ + ".bin"), kGoldenTokens);
}

TEST_F(IndexedDatasetTest, WriterRefusesTokensThatDoNotFit) {
  auto writer = IndexedDatasetWriter::Create(prefix_, TokenType::kUint16);
  ASSERT_TRUE(writer.ok());
  EXPECT_THAT(std::string((*writer)->AddSequence({65536}).message()),
              HasSubstr("65536 does not fit"));
  EXPECT_FALSE((*writer)->AddSequence({-1}).ok());
  EXPECT_EQ((*writer)->tokens(), 0);
}

TEST_F(IndexedDatasetTest, VocabularySizeChoosesTheTypeAsInMegatron) {
  EXPECT_EQ(TokenTypeFor(65499), TokenType::kUint16);
  EXPECT_EQ(TokenTypeFor(65500), TokenType::kInt32);
}

TEST_F(IndexedDatasetTest, MissingFilesAreNamed) {
  EXPECT_EQ(IndexedDataset::Open(prefix_).status().message(),
            "there is no file " + prefix_ + ".idx");
  ASSERT_TRUE(WriteFile(prefix_ + ".idx", kGoldenIndex).ok());
  EXPECT_EQ(IndexedDataset::Open(prefix_).status().message(),
            "there is no file " + prefix_ + ".bin");
}

TEST_F(IndexedDatasetTest, ForeignAndNewerFilesAreRefused) {
  EXPECT_THAT(Error("TNTIDX\0\0 and more than a header's bytes"),
              HasSubstr(".idx is not the index of a data set"));
  EXPECT_THAT(Error(IndexWith(9, "\2")),
              HasSubstr(".idx has version 2, this build reads version 1"));
  EXPECT_THAT(Error(IndexWith(17, "\6")), HasSubstr("tokens of float64, which is not supported"));
  EXPECT_THAT(Error(IndexWith(17, "\11")), HasSubstr("an unknown type (code 9)"));
}

TEST_F(IndexedDatasetTest, EveryTruncationOfTheIndexIsNoticed) {
  for (size_t size = 0; size < kGoldenIndex.size(); ++size) {
    ASSERT_THAT(Error(kGoldenIndex.substr(0, size)), HasSubstr(".idx is truncated")) << size;
  }
  EXPECT_THAT(Error(IndexWith(18, "\xff\xff\xff\xff\xff\xff\xff\xff")), HasSubstr("is truncated"));
  EXPECT_THAT(Error(IndexWith(26, "\xff\xff\xff\xff\xff\xff\xff\x1f")), HasSubstr("is truncated"));
}

TEST_F(IndexedDatasetTest, ShortDataAreNoticedWithBothSizes) {
  EXPECT_THAT(Error(kGoldenIndex, kGoldenTokens.substr(0, 9)),
              HasSubstr(".bin is truncated: its index speaks of 10 bytes and it has 9"));
}

TEST_F(IndexedDatasetTest, ImpossibleTablesAreNoticed) {
  EXPECT_THAT(Error(IndexWith(34, "\xff\xff\xff\xff")), HasSubstr("sequence 0 has -1 tokens"));
  EXPECT_THAT(Error(IndexWith(46 + 7, "\x80")), HasSubstr("corrupt: sequence 0"));
  EXPECT_THAT(Error(IndexWith(46 + 7, "\x7f")), HasSubstr("corrupt: sequence 0"));
  EXPECT_THAT(Error(IndexWith(70, "\1")), HasSubstr("does not start with 0"));
  EXPECT_THAT(Error(IndexWith(78, "\4")),
              HasSubstr("document 0 is the sequences from 0 to 4 of 3"));
  EXPECT_THAT(Error(IndexWith(86, "\1")),
              HasSubstr("document 1 is the sequences from 2 to 1 of 3"));
}

TEST_F(IndexedDatasetTest, TokensThatAreNoIdsAreNoticed) {
  const auto dataset = OpenBytes(IndexWith(17, "\3"), std::string("\1\0\xff\xff\3\0\4\0\3\2", 10));
  ASSERT_TRUE(dataset.ok());
  std::vector<int32_t> tokens(3);
  EXPECT_THAT(std::string((*dataset)->Read(0, 0, absl::MakeSpan(tokens)).message()),
              HasSubstr("token 1 of sequence 0 is -1"));
}

}  // namespace
}  // namespace forerun
