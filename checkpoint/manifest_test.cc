// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/manifest.h"

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::HasSubstr;

Manifest Example() {
  Manifest manifest;
  manifest.iteration = 10;
  manifest.world_size = 2;
  manifest.metadata = {{"consumed_samples", "320"}, {"quote", "a \"b\" \n"}};
  manifest.pieces = {{"w",
                      Shape{4, 6},
                      {{Shape{1, 2}, Shape{3, 4}}, 2, 10},
                      DType::kBF16,
                      "rank_00001",
                      "w#1",
                      0xfedcba9876543210},
                     {"step", Shape{}, {Box{}, 0, 1}, DType::kI64, "rank_00000", "step", 7}};
  return manifest;
}

std::string Error(absl::string_view json) {
  return std::string(Manifest::Parse(json, "M").status().message());
}

TEST(Manifest, RoundTrips) {
  const auto parsed = Manifest::Parse(Example().ToJson(), "M");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->iteration, 10);
  EXPECT_EQ(parsed->world_size, 2);
  EXPECT_EQ(parsed->metadata, Example().metadata);
  EXPECT_EQ(parsed->pieces, Example().pieces);
  EXPECT_EQ(*ParsePieces(PiecesToJson(Example().pieces), "M"), Example().pieces);
}

TEST(Manifest, ForeignFilesAndOtherVersionsAreToldApart) {
  EXPECT_EQ(Error("PK\3\4"), "M is corrupt: it is not JSON");
  EXPECT_THAT(Error("{}"), HasSubstr("M is not the manifest of a checkpoint"));
  EXPECT_THAT(Error("[1]"), HasSubstr("M is not the manifest of a checkpoint"));
  EXPECT_EQ(Error(absl::StrReplaceAll(Example().ToJson(), {{"\"version\":1", "\"version\":2"}})),
            "M has version 2, this build reads version 1");
}

TEST(Manifest, EveryChangedOrMissingByteIsNoticed) {
  const std::string json = Example().ToJson();
  for (size_t i = 0; i + 1 < json.size(); ++i) {  // all but the line feed
    std::string changed = json;
    changed[i] = changed[i] == '1' ? '2' : '1';
    EXPECT_FALSE(Manifest::Parse(changed, "M").ok()) << i;
    EXPECT_FALSE(Manifest::Parse(json.substr(0, i), "M").ok()) << i;
  }
}

TEST(Manifest, ImpossiblePiecesAreRefused) {
  Manifest outside = Example();
  outside.pieces[0].region.numel = 11;
  EXPECT_EQ(Error(outside.ToJson()), "M is corrupt: a piece of w lies outside its tensor");
  Manifest elsewhere = Example();
  elsewhere.pieces[0].file = "../x";
  EXPECT_EQ(Error(elsewhere.ToJson()), "M is corrupt: a file lies elsewhere");
  EXPECT_THAT(std::string(ParsePieces("[{}]", "M").status().message()), HasSubstr("M is corrupt"));
  EXPECT_THAT(std::string(ParsePieces("[", "M").status().message()), HasSubstr("M is corrupt"));
}

}  // namespace
}  // namespace forerun
