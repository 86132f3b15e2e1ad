// SPDX-License-Identifier: Apache-2.0
#include "data/split.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::HasSubstr;

DocumentRange Of(absl::string_view split, SplitPart part, int64_t documents) {
  return Split::Parse(split)->Documents(part, documents);
}

TEST(Split, CutsDocumentsInProportion) {
  EXPECT_EQ(Of("969,30,1", SplitPart::kTrain, 1000), (DocumentRange{0, 969}));
  EXPECT_EQ(Of("969,30,1", SplitPart::kValid, 1000), (DocumentRange{969, 999}));
  EXPECT_EQ(Of("969,30,1", SplitPart::kTest, 1000), (DocumentRange{999, 1000}));
  EXPECT_EQ(Of("1", SplitPart::kTrain, 7), (DocumentRange{0, 7}));
  EXPECT_EQ(Of("1", SplitPart::kTest, 7), (DocumentRange{7, 7}));
  EXPECT_EQ(Of("0.5,0.5", SplitPart::kTrain, 5), (DocumentRange{0, 2}));  // 2.5 to even
}

TEST(Split, PartsAreDisjointAndCoverEveryDocument) {
  for (const char* text : {"969,30,1", "98,1,1", "1,1,1", "0,1,0", "3,0,7", "0.1,0.2,0.7"}) {
    const Split split = *Split::Parse(text);
    for (int64_t documents = 0; documents < 300; ++documents) {
      int64_t end = 0;
      for (int part = 0; part < kSplitParts; ++part) {
        const DocumentRange range = split.Documents(static_cast<SplitPart>(part), documents);
        ASSERT_EQ(range.begin, end) << text << " of " << documents;
        ASSERT_LE(range.begin, range.end);
        end = range.end;
      }
      ASSERT_EQ(end, documents) << text;
    }
  }
}

TEST(Split, FaultsAreNamed) {
  const auto error = [](absl::string_view text) {
    return std::string(Split::Parse(text).status().message());
  };
  EXPECT_EQ(error("9,x"), "--split 9,x: 'x' is not a number of 0 or more");
  EXPECT_THAT(error("9,-1"), HasSubstr("'-1' is not"));
  EXPECT_THAT(error("9,nan"), HasSubstr("'nan' is not"));
  EXPECT_THAT(error(""), HasSubstr("'' is not"));
  EXPECT_THAT(error("1,1,1,1"), HasSubstr("has 4 numbers"));
  EXPECT_EQ(error("0,0,0"), "--split 0,0,0 is all zero");
}

}  // namespace
}  // namespace forerun
