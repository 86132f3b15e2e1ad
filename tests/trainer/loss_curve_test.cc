// SPDX-License-Identifier: Apache-2.0
// Losses of 200 steps on real text (this project's own first page, letter by letter): with the
// kernels of the cpu as with the reference ops, and in bf16 close to fp32.
#include <cmath>
#include <memory>
#include <vector>

#include "core/base/check.h"
#include "core/base/mapped_file.h"
#include "core/ops/reference/kernels.h"
#include "core/tensor/dtype.h"
#include "data/dataset.h"
#include "gtest/gtest.h"
#include "tests/support/job.h"

namespace forerun {
namespace {

constexpr int64_t kSteps = 200, kLength = 16;

// Samples start at places that are spread over the text.
class TextDataset final : public Dataset {
 public:
  TextDataset(const std::string& path, int64_t seq_length) : seq_length_(seq_length) {
    auto file = MappedFile::Open(path);
    FR_CHECK(file.ok()) << file.status().ToString();
    file_ = *std::move(file);
  }
  int64_t size() const override { return Places(); }
  int64_t seq_length() const override { return seq_length_; }
  int64_t vocab_size() const override { return 128; }
  absl::Status Get(int64_t sample, absl::Span<int32_t> tokens) const override {
    const int64_t begin = sample * 7919 % Places();
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = file_->bytes()[begin + i] % 128;
    return absl::OkStatus();
  }

 private:
  int64_t Places() const { return static_cast<int64_t>(file_->bytes().size()) - seq_length_; }

  const int64_t seq_length_;
  std::shared_ptr<const MappedFile> file_;
};

JobSpec Job(const Dataset& dataset, DType dtype) {
  JobSpec spec = T0();
  spec.config.num_layers = 2;
  spec.config.hidden_size = 32;
  spec.config.seq_length = spec.options.seq_length = kLength;
  spec.config.dtype = dtype;
  spec.options.global_batch_size = spec.options.micro_batch_size = 2;
  spec.iterations = kSteps;
  spec.lr = 2e-3;
  spec.dataset = &dataset;
  return spec;
}

std::vector<double> Losses(const JobSpec& spec) {
  const auto result = RunJob(spec);
  FR_CHECK(result.ok()) << result.status().ToString();
  return result->losses;
}

class LossCurve : public testing::Test {
 protected:
  const TextDataset text_{"README.md", kLength};
  const std::vector<double> losses_ = Losses(Job(text_, DType::kF32));
};

TEST_F(LossCurve, IsThatOfTheReferenceOps) {
  JobSpec spec = Job(text_, DType::kF32);
  spec.kernels = &reference::Kernels();
  const std::vector<double> expected = Losses(spec);
  for (int64_t i = 0; i < kSteps; ++i) EXPECT_NEAR(losses_[i], expected[i], 1e-4) << i + 1;
  EXPECT_LT(losses_.back(), 3.2);
}

TEST_F(LossCurve, OfBFloat16FollowsThatOfFp32) {
  const std::vector<double> rounded = Losses(Job(text_, DType::kBF16));
  // Means over ten steps: what a curve on paper shows.
  for (int64_t begin = 0; begin < kSteps; begin += 10) {
    double difference = 0.0;
    for (int64_t i = begin; i < begin + 10; ++i) difference += (rounded[i] - losses_[i]) / 10;
    EXPECT_LT(std::abs(difference), 0.02) << "from step " << begin + 1;
  }
}

}  // namespace
}  // namespace forerun
