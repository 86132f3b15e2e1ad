// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer.h"

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ByteTokenizer, RoundTripsEveryByte) {
  std::string text(256, '\0');
  std::iota(text.begin(), text.end(), 0);
  const ByteTokenizer tokenizer;
  std::vector<int32_t> tokens;
  ASSERT_TRUE(tokenizer.Encode(text, &tokens).ok());
  std::vector<int32_t> expected(256);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(tokens, expected);
  tokens.push_back(tokenizer.eod());
  EXPECT_EQ(*tokenizer.Decode(tokens), text);
  EXPECT_EQ(tokenizer.vocab_size(), 257);
}

TEST(ByteTokenizer, RefusesIdsOutOfRange) {
  EXPECT_EQ(ByteTokenizer().Decode({65, 257}).status().message(),
            "token 257 lies outside the vocabulary of 257");
  EXPECT_FALSE(ByteTokenizer().Decode({-1}).ok());
}

TEST(NullTokenizer, ReadsNumbersAndEndsDocumentsWithTheIdAfterThem) {
  const NullTokenizer tokenizer(100);
  std::vector<int32_t> tokens = {7};
  ASSERT_TRUE(tokenizer.Encode(" 0 99\n5 ", &tokens).ok());
  EXPECT_THAT(tokens, ElementsAre(7, 0, 99, 5));
  EXPECT_EQ(tokenizer.eod(), 100);
  EXPECT_EQ(tokenizer.vocab_size(), 101);
  tokens.push_back(100);
  EXPECT_EQ(*tokenizer.Decode(tokens), "7 0 99 5");
}

TEST(NullTokenizer, NamesTheWordThatIsNoIdAndAppendsNothing) {
  const NullTokenizer tokenizer(100);
  std::vector<int32_t> tokens = {7};
  EXPECT_EQ(tokenizer.Encode("1 x", &tokens).message(), "'x' is not a token id from 0 to 99");
  EXPECT_FALSE(tokenizer.Encode("100", &tokens).ok());
  EXPECT_FALSE(tokenizer.Encode("-1", &tokens).ok());
  EXPECT_THAT(tokens, ElementsAre(7));
}

TEST(TokenizerByType, FindsTheKnownAndListsThemForAnUnknown) {
  EXPECT_EQ((*TokenizerByType("ByteTokenizer", 0))->vocab_size(), 257);
  EXPECT_EQ((*TokenizerByType("NullTokenizer", 50256))->vocab_size(), 50257);
  EXPECT_THAT(std::string(TokenizerByType("NullTokenizer", 0).status().message()),
              HasSubstr("needs --vocab-size"));
  EXPECT_EQ(TokenizerByType("BytTokenizer", 0).status().message(),
            "there is no tokenizer 'BytTokenizer'; --tokenizer-type knows ByteTokenizer and "
            "NullTokenizer");
}

}  // namespace
}  // namespace forerun
