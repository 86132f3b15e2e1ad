// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/output_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace forerun {
namespace {

using testing::HasSubstr;

StepMetrics Example() {
  StepMetrics m;
  m.iteration = 7;
  m.consumed_samples = 56;
  m.loss = 1.0 / 3.0;  // these need all 17 digits
  m.grad_norm = 0.1 + 0.2;
  m.lr = 1e-3 / 7.0;
  m.step_ms = 1234.5678901234567;
  m.tokens_per_second = 1e6 / 3.0;
  m.exposed = {0.1, 1e-300, 12345678.900000001};
  return m;
}

std::vector<std::string> Lines(const std::string& path) {
  return absl::StrSplit(*ReadFile(path), '\n', absl::SkipEmpty());
}

TEST(MetricsFile, EveryNumberComesBackWithTheSameBits) {
  const std::string path = absl::StrCat(testing::TempDir(), "/bits.jsonl");
  const StepMetrics m = Example();
  ASSERT_TRUE(MetricsFile::Open(path)->Write(m).ok());
  const nlohmann::json line = nlohmann::json::parse(Lines(path).at(0));
  EXPECT_EQ(line.at("iteration"), m.iteration);
  EXPECT_EQ(line.at("consumed_samples"), m.consumed_samples);
  EXPECT_EQ(line.at("loss").get<double>(), m.loss);
  EXPECT_EQ(line.at("grad_norm").get<double>(), m.grad_norm);
  EXPECT_EQ(line.at("lr").get<double>(), m.lr);
  EXPECT_EQ(line.at("step_ms").get<double>(), m.step_ms);
  EXPECT_EQ(line.at("tokens_per_second").get<double>(), m.tokens_per_second);
  const nlohmann::json& exposed = line.at("exposed_ms");
  EXPECT_EQ(exposed.at("param_gather").get<double>(), m.exposed.param_gather_ms);
  EXPECT_EQ(exposed.at("grad_reduce").get<double>(), m.exposed.grad_reduce_ms);
  EXPECT_EQ(exposed.at("pipeline").get<double>(), m.exposed.pipeline_ms);
}

TEST(MetricsFile, EachStepIsOnTheDiskAsSoonAsItIsWritten) {
  const std::string path = absl::StrCat(testing::TempDir(), "/through.jsonl");
  absl::StatusOr<MetricsFile> file = MetricsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  for (size_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(file->Write(Example()).ok());
    EXPECT_EQ(Lines(path).size(), i);  // while the file is open
  }
}

TEST(MetricsFile, ARunThatGoesOnAppends) {
  const std::string path = absl::StrCat(testing::TempDir(), "/append.jsonl");
  ASSERT_TRUE(MetricsFile::Open(path)->Write(Example()).ok());
  ASSERT_TRUE(MetricsFile::Open(path)->Write(Example()).ok());
  EXPECT_EQ(Lines(path).size(), 2u);
}

TEST(MetricsFile, APathThatCannotBeWrittenIsNamed) {
  EXPECT_EQ(MetricsFile::Open("/nowhere/m.jsonl").status().message(),
            "cannot write metrics file /nowhere/m.jsonl: No such file or directory");
  absl::StatusOr<MetricsFile> full = MetricsFile::Open("/dev/full");
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(full->Write(Example()).message(),
            "cannot write metrics file /dev/full: No space left on device");
}

TEST(LogLine, HasTheFieldsOfMegatronLm) {
  const std::string line = LogLine(Example(), 500, 8);
  for (const char* field :
       {" iteration        7/     500 |", " consumed samples:           56 |",
        " elapsed time per iteration (ms): 1234.6 |", " learning rate: 1.428571E-04 |",
        " global batch size:     8 |", " lm loss: 3.333333E-01 |", " grad norm: 0.300 |"}) {
    EXPECT_THAT(line, HasSubstr(field));
  }
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace forerun
