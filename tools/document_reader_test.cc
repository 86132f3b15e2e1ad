// SPDX-License-Identifier: Apache-2.0
#include "tools/document_reader.h"

#include "core/base/output_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<DocumentReader> Reader(const std::string& name, const std::string& contents,
                                       std::vector<std::string> keys = {"text"}) {
  const std::string path = testing::TempDir() + "/" + name;
  EXPECT_TRUE(WriteFile(path, contents).ok());
  return *DocumentReader::Open(path, std::move(keys));
}

// The documents, with '|' between a document's texts, and the error that ended them, if any.
std::vector<std::string> Documents(DocumentReader& reader) {
  std::vector<std::string> documents;
  std::vector<std::string> texts;
  while (true) {
    const absl::StatusOr<bool> found = reader.Next(&texts);
    if (!found.ok()) documents.push_back(std::string(found.status().message()));
    if (!found.ok() || !*found) return documents;
    std::string all;
    for (const std::string& text : texts) all += (all.empty() ? "" : "|") + text;
    documents.push_back(all);
  }
}

TEST(DocumentReader, BlankLinesSeparateTheDocumentsOfPlainText) {
  EXPECT_THAT(Documents(*Reader("a.txt", "\n \none\n two\n\n\n\t\nthree\r\nfour")),
              ElementsAre("one\n two", "three\nfour"));
  EXPECT_THAT(Documents(*Reader("b.txt", "a\n\nb\n")), ElementsAre("a", "b"));
  EXPECT_THAT(Documents(*Reader("c.txt", "")), ElementsAre());
  EXPECT_THAT(Documents(*Reader("d.txt", "\n\n")), ElementsAre());
}

TEST(DocumentReader, AJsonLineIsADocument) {
  EXPECT_THAT(Documents(*Reader("a.jsonl",
                                "{\"text\": \"one\\n\\u00e9\", \"id\": 3}\n\n{\"text\": \"\"}\r\n"
                                "{\"text\":\"three\"}")),
              ElementsAre("one\n\xc3\xa9", "", "three"));
  EXPECT_THAT(Documents(*Reader("b.json", "{\"a\":\"1\",\"b\":\"2\"}\n", {"b", "a"})),
              ElementsAre("2|1"));
}

TEST(DocumentReader, FaultsNameTheLine) {
  const auto error = [](const std::string& line) {
    const auto reader = Reader("fault.jsonl", "{\"text\": \"ok\"}\n\n" + line + "\n");
    return Documents(*reader).back();
  };
  EXPECT_THAT(error("{\"text\": }"), HasSubstr("fault.jsonl line 3 is not JSON, from its byte 10"));
  EXPECT_THAT(error("{\"text\": \"\xff\"}"), HasSubstr("line 3 is not JSON"));
  EXPECT_THAT(error("[1]"), HasSubstr("line 3 is JSON but not an object"));
  EXPECT_THAT(error("{\"txt\": \"a\"}"), HasSubstr("line 3 has no text under the key \"text\""));
  EXPECT_THAT(error("{\"text\": 5}"), HasSubstr("line 3 has no text under the key \"text\""));
}

TEST(DocumentReader, KnowsWhereItIs) {
  const auto reader = Reader("where.txt", "a\nb\n\n\nc\n");
  std::vector<std::string> texts;
  ASSERT_TRUE(*reader->Next(&texts));
  EXPECT_THAT(reader->Where(), HasSubstr("where.txt line 1"));
  ASSERT_TRUE(*reader->Next(&texts));
  EXPECT_THAT(reader->Where(), HasSubstr("where.txt line 5"));
  EXPECT_EQ(reader->bytes_read(), reader->bytes_total());
  EXPECT_FALSE(*reader->Next(&texts));
}

}  // namespace
}  // namespace forerun
