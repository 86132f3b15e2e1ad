// SPDX-License-Identifier: Apache-2.0
#include "core/base/output_file.h"

#include <sys/stat.h>

#include <string>

#include "core/base/mapped_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::HasSubstr;

std::string TestPath(const std::string& name) { return testing::TempDir() + "/" + name; }

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0;
}

TEST(OutputFile, ReplacesTheOlderFileOnlyWhenPublished) {
  const std::string path = TestPath("replaced");
  ASSERT_TRUE(WriteFile(path, "old").ok());
  auto file = OutputFile::Create(path);
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("new, ").ok());
  EXPECT_EQ(*ReadFile(path), "old");
  ASSERT_TRUE((*file)->Append("longer").ok());
  ASSERT_TRUE((*file)->Publish().ok());
  EXPECT_EQ(*ReadFile(path), "new, longer");
  EXPECT_FALSE(Exists(path + ".tmp"));
}

TEST(OutputFile, LeavesNothingBehindWhenAbandoned) {
  const std::string path = TestPath("abandoned");
  {
    auto file = OutputFile::Create(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append("x").ok());
  }
  EXPECT_FALSE(Exists(path));
  EXPECT_FALSE(Exists(path + ".tmp"));
}

TEST(OutputFile, AppendsAcrossTheBufferAndWritesAtAnyPlace) {
  const std::string path = TestPath("pieces");
  const std::string small(1000, 's');
  const std::string large((3 << 20) + 7, 'l');
  auto file = OutputFile::Create(path);
  ASSERT_TRUE(file.ok());
  std::string expected;
  for (const std::string& part : {small, large, small, small, large}) {
    ASSERT_TRUE((*file)->Append(part).ok());
    expected += part;
  }
  ASSERT_TRUE((*file)->WriteAt(static_cast<int64_t>(expected.size()) + 2, "end", 3).ok());
  expected += std::string(2, '\0') + "end";
  ASSERT_TRUE((*file)->Publish().ok());
  EXPECT_TRUE(*ReadFile(path) == expected);
}

TEST(OutputFile, FailuresNameTheFile) {
  const std::string path = TestPath("no_such_folder/file");
  EXPECT_THAT(std::string(WriteFile(path, "x").message()), HasSubstr(path + " cannot be written"));
  EXPECT_EQ(ReadFile(path).status().message(), "there is no file " + path);
  EXPECT_THAT(std::string(ReadFile(testing::TempDir()).status().message()),
              HasSubstr("is not a regular file"));
}

TEST(MappedFile, StaysValidWhenTheFileIsReplacedAndMayBeEmpty) {
  const std::string path = TestPath("mapped");
  ASSERT_TRUE(WriteFile(path, "first").ok());
  const auto mapped = MappedFile::Open(path);
  ASSERT_TRUE(mapped.ok());
  ASSERT_TRUE(WriteFile(path, "").ok());
  EXPECT_EQ(std::string((*mapped)->bytes().begin(), (*mapped)->bytes().end()), "first");
  const auto empty = MappedFile::Open(path);
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE((*empty)->bytes().empty());
}

}  // namespace
}  // namespace forerun
