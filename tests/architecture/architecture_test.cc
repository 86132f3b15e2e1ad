// SPDX-License-Identifier: Apache-2.0
// The sources of this repository keep the rules of rules.h, and the table of layers is the one of
// docs/design.md: arrows down only, siblings blind to one another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/architecture/rules.h"

namespace forerun::architecture {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::Not;

std::string Read(const std::string& name) {
  std::ifstream file("external/source_tree/" + name);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

Layers Table() { return ParseLayers(Read("allowed.txt")); }

TEST(Architecture, TheTableHasEveryLayer) { EXPECT_EQ(Table().order.size(), 21u); }

TEST(Architecture, ArrowsPointDown) {
  const Layers layers = Table();
  for (size_t i = 0; i < layers.order.size(); ++i) {
    for (size_t j = i + 1; j < layers.order.size(); ++j) {
      EXPECT_FALSE(layers.MayUse(layers.order[i], layers.order[j]))
          << layers.order[i] << " uses " << layers.order[j] << ", which is above it";
    }
  }
}

TEST(Architecture, SiblingsAreBlindToOneAnother) {
  const Layers layers = Table();
  const std::vector<std::vector<std::string>> families = {
      {"core/device", "core/random"},
      {"parallel/tensor_parallel", "parallel/data_parallel", "parallel/pipeline"},
      {"models", "optim", "checkpoint", "data"},
      {"bench", "tests", "tools", "examples"},
  };
  for (const auto& family : families) {
    for (const std::string& user : family) {
      for (const std::string& used : family) {
        EXPECT_EQ(layers.MayUse(user, used), user == used) << user << " and " << used;
      }
    }
  }
}

TEST(Architecture, CoreKnowsNoRanksAndNothingUsesLeaves) {
  const Layers layers = Table();
  for (const std::string& user : layers.order) {
    for (const std::string& used : layers.allowed.at(user)) {
      const bool is_core = absl::StartsWith(user, "core/");
      EXPECT_TRUE(!is_core || absl::StartsWith(used, "core/")) << user << " uses " << used;
      EXPECT_THAT(used, Not(AnyOf("bench", "tests", "tools", "examples"))) << user;
    }
  }
  EXPECT_FALSE(layers.MayUse("optim", "models"));
}

TEST(Architecture, SourcesKeepTheRules) {
  const Layers layers = Table();
  const std::vector<std::string> paths =
      absl::StrSplit(Read("files.txt"), '\n', absl::SkipEmpty());
  EXPECT_THAT(paths, Contains("tests/architecture/rules.h"));
  for (const std::string& path : paths) {
    for (const std::string& fault : CheckFile(layers, path, Read("tree/" + path + ".txt"))) {
      ADD_FAILURE() << fault;
    }
  }
}

}  // namespace
}  // namespace forerun::architecture
