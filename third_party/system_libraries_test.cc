// SPDX-License-Identifier: Apache-2.0
// Each library that is linked is the one whose headers were compiled. Prints all versions.
#include <benchmark/benchmark.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <xxhash.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#ifdef FORERUN_TEST_ONEDNN
#include <oneapi/dnnl/dnnl.hpp>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

namespace forerun {
namespace {

std::map<std::string, std::string> g_versions;

TEST(SystemLibraries, EveryVersionWasFound) {
  std::cout << "compiler " << __VERSION__ << "\nC++ standard " << __cplusplus << "\n";
#ifdef _OPENMP
  std::cout << "openmp " << _OPENMP << "\n";
#endif
  for (const auto& [name, version] : g_versions) {
    std::cout << name << " " << version << "\n";
    EXPECT_EQ(version.find('?'), std::string::npos) << name;
  }
  EXPECT_EQ(g_versions.size(), 10u);
}

TEST(SystemLibraries, AbslLinks) {
  absl::flat_hash_map<std::string, absl::StatusOr<int>> map;
  map["a"] = 1;
  map["b"] = absl::NotFoundError("b");
  EXPECT_EQ(map.at("b").status().ToString(), "NOT_FOUND: b");
  absl::Mutex mutex;
  absl::MutexLock lock(&mutex);
  EXPECT_EQ(absl::StrCat(absl::Cord("x").size(), absl::StrFormat("%.1f", 0.5)), "10.5");
  EXPECT_GT(absl::Now(), absl::UnixEpoch());
}

TEST(SystemLibraries, HashLinkedIsTheOneCompiled) {
  EXPECT_EQ(XXH_versionNumber(), static_cast<unsigned>(XXH_VERSION_NUMBER));
  EXPECT_EQ(XXH3_64bits("", 0), 0x2d06800538d394c2u);
}

TEST(SystemLibraries, JsonAgreesWithItsVersion) {
  EXPECT_EQ(nlohmann::json::meta()["version"]["string"], g_versions.at("json"));
}

TEST(SystemLibraries, FlagsAgreeWithTheirVersion) { EXPECT_EQ(CLI11_VERSION, g_versions.at("cli11")); }

TEST(SystemLibraries, HighwayKnowsThisMachine) {
  EXPECT_NE(hwy::SupportedTargets() & HWY_STATIC_TARGET, 0);
}

TEST(SystemLibraries, BenchmarkLinks) {
  EXPECT_NE(benchmark::RegisterBenchmark("nothing", [](benchmark::State&) {}), nullptr);
}

#ifdef FORERUN_TEST_ONEDNN
TEST(SystemLibraries, OnednnLinkedIsTheOneCompiled) {
  const dnnl_version_t* linked = dnnl_version();
  EXPECT_EQ(absl::StrCat(linked->major, ".", linked->minor, ".", linked->patch),
            g_versions.at("onednn"));
  EXPECT_EQ(linked->cpu_runtime, static_cast<unsigned>(DNNL_RUNTIME_OMP));
}
#endif

#ifdef _OPENMP
TEST(SystemLibraries, OpenmpRunsTheThreadsAskedFor) {
  int threads = 0;
#pragma omp parallel num_threads(2) reduction(+ : threads)
  threads += 1;
  EXPECT_EQ(threads, 2);
}
#endif

}  // namespace
}  // namespace forerun

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  std::ifstream file(argc > 1 ? argv[1] : "");
  for (std::string name, version; file >> name >> version;) forerun::g_versions[name] = version;
  return RUN_ALL_TESTS();
}
