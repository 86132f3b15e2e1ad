// SPDX-License-Identifier: Apache-2.0
// Every rule fails where it is broken, and only there.
#include "tests/architecture/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace forerun::architecture {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const char kLicence[] = "// SPDX-License-Identifier: Apache-2.0\n";
const char kBuild[] =
    "# SPDX-License-Identifier: Apache-2.0\n"
    "package(default_visibility = [\"//visibility:private\"])\n";

Layers Small() {
  return ParseLayers(
      "core/base\n"
      "core/ops core/base\n"
      "parallel/pipeline core/base core/ops\n"
      "optim core/base\n"
      "trainer core/base core/ops parallel/pipeline optim\n");
}

std::vector<std::string> Code(const std::string& path, const std::string& text) {
  return CheckFile(Small(), path, kLicence + text);
}

std::vector<std::string> Build(const std::string& path, const std::string& text) {
  return CheckFile(Small(), path, kBuild + text);
}

TEST(Rules, LayerIsFoundInPathsAndLabels) {
  EXPECT_EQ(Small().LayerOf("core/base/deep/a.h"), "core/base");
  EXPECT_EQ(Small().LayerOf("core/base:a"), "core/base");
  EXPECT_EQ(Small().LayerOf("core/base"), "core/base");
  EXPECT_EQ(Small().LayerOf("core/baseless/a.h"), "");
  EXPECT_EQ(Small().LayerOf("third_party:absl"), "");
}

TEST(Rules, IncludesPointDown) {
  EXPECT_THAT(Code("core/ops/a.cc", "#include \"core/base/a.h\"\n#include \"core/ops/b.h\"\n"),
              IsEmpty());
  EXPECT_THAT(Code("core/base/a.cc", "\n#include \"core/ops/b.h\"\n"),
              ElementsAre("core/base/a.cc:3: core/base must not include core/ops/b.h"));
}

TEST(Rules, SiblingsDoNotIncludeOneAnother) {
  EXPECT_THAT(
      Code("optim/a.h", "#include \"parallel/pipeline/b.h\"\n"),
      ElementsAre("optim/a.h:2: optim must not include parallel/pipeline/b.h"));
}

TEST(Rules, LabelsPointDown) {
  EXPECT_THAT(Build("core/ops/BUILD", "deps = [\":a\", \"//core/base\", \"//third_party:absl\"]\n"),
              IsEmpty());
  EXPECT_THAT(
      Build("core/base/BUILD", "deps = [\"//core/ops:a\"]\n"),
      ElementsAre("core/base/BUILD:3: core/base must not depend on core/ops (//core/ops:a)"));
}

TEST(Rules, VisibilityIsTheGroupOfTheOwnLayer) {
  EXPECT_THAT(Build("core/ops/BUILD", "[\"//build_defs:users_of_core_ops\"]\n"), IsEmpty());
  EXPECT_THAT(Build("parallel/pipeline/BUILD", "[\"//build_defs:users_of_pipeline\"]\n"),
              IsEmpty());
  EXPECT_THAT(Build("core/ops/BUILD", "[\"//build_defs:users_of_core_base\"]\n"),
              ElementsAre("core/ops/BUILD:3: shown to //build_defs:users_of_core_base and not "
                          "//build_defs:users_of_core_ops"));
  EXPECT_THAT(Build("core/ops/BUILD", "[\"//visibility:public\"]\n"),
              ElementsAre("core/ops/BUILD:3: public; name a group of //build_defs"));
}

TEST(Rules, VisibilityToPackagesPointsUp) {
  EXPECT_THAT(Build("core/ops/BUILD", "[\"//trainer:__pkg__\"]\n"), IsEmpty());
  EXPECT_THAT(Build("core/ops/BUILD", "[\"//core/base:__subpackages__\"]\n"),
              ElementsAre("core/ops/BUILD:3: core/base must not depend on core/ops "
                          "(//core/base:__subpackages__)"));
}

TEST(Rules, PackagesArePrivateByDefault) {
  EXPECT_THAT(CheckFile(Small(), "optim/BUILD", "# SPDX-License-Identifier: Apache-2.0\n"),
              ElementsAre("optim/BUILD: the package is not private by default"));
}

TEST(Rules, EveryFileCarriesTheLicence) {
  EXPECT_THAT(CheckFile(Small(), "tools/a.sh", "#!/bin/sh\n"),
              ElementsAre("tools/a.sh: no SPDX licence line"));
  EXPECT_THAT(CheckFile(Small(), "tools/a.sh", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0"),
              IsEmpty());
}

TEST(Rules, FilesStayShort) {
  const auto lines = [](int n) { return std::string(n - 1, '\n'); };  // the licence is one more
  EXPECT_THAT(Code("optim/a.h", lines(349)), IsEmpty());
  EXPECT_THAT(Code("optim/a.h", lines(350)),
              ElementsAre("optim/a.h: 350 lines, must stay under 350"));
  EXPECT_THAT(Code("optim/a.cc", lines(499)), IsEmpty());
  EXPECT_THAT(Code("optim/a.cc", lines(500)),
              ElementsAre("optim/a.cc: 500 lines, must stay under 500"));
}

TEST(Rules, ContextIsNotHiddenInThreads) {
  EXPECT_THAT(Code("optim/a.cc", "// no thread_local\nconst char* s = \"thread_local\";\n"),
              IsEmpty());
  EXPECT_THAT(Code("optim/a.cc", "thread_local int x;\n"),
              ElementsAre("optim/a.cc:2: thread_local; pass the context"));
}

TEST(Rules, CodeIsNotConditional) {
  const std::string fault = "optim/a.cc:2: conditional compilation; choose at link time";
  EXPECT_THAT(Code("optim/a.cc", "#ifdef CUDA\n#endif\n"), ElementsAre(fault));
  EXPECT_THAT(Code("optim/a.cc", "#if 0\n#endif\n"), ElementsAre(fault));
  EXPECT_THAT(Code("optim/a.cc", "# ifndef NDEBUG\n#endif\n"), ElementsAre(fault));
  EXPECT_THAT(Code("optim/a.cc", "#if HWY_ONCE\n#endif\n"), IsEmpty());
  EXPECT_THAT(Code("third_party/a.cc", "#ifdef X\n#endif\n"), IsEmpty());
}

}  // namespace
}  // namespace forerun::architecture
