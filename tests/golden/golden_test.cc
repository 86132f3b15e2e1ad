// SPDX-License-Identifier: Apache-2.0
// Whole models against PyTorch in double precision: make_golden.py wrote the values, and shares no
// code with what it checks, not even the random numbers.

#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/testing/map_sink.h"
#include "core/device/allocator.h"
#include "core/nn/testing/plain_reader.h"
#include "core/ops/copy.h"
#include "core/ops/cpu/kernels.h"
#include "data/batch.h"
#include "data/mock_dataset.h"
#include "gtest/gtest.h"
#include "models/gpt.h"
#include "models/gpt2.h"
#include "models/llama.h"
#include "nlohmann/json.hpp"
#include "optim/adamw.h"
#include "optim/grad_clip.h"
#include "parallel/tensor_parallel/testing/rank_threads.h"

namespace forerun {
namespace {

constexpr double kTolerance = 1e-5;

struct Golden {
  const char* file;
  GptConfig config;
};

// One rank that trains a small model in fp32 on the cpu's own kernels.
class Trainee {
 public:
  Trainee(const GptConfig& config, const nlohmann::json& golden)
      : golden_(golden),
        chunk_(GptChunk::Create(config, {}, *group_).value()),
        reader_(op_, chunk_->registry(), golden["seed"]),
        sink_(op_),
        data_(1 << 20, config.seq_length, config.vocab_size, golden["seed"]) {}

  // Forward and backward of one global batch in microbatches of one; the mean loss.
  double Accumulate() {
    const int64_t batch = golden_["global_batch"];
    sink_.Clear();
    double loss = 0.0;
    for (int64_t i = 0; i < batch; ++i) {
      Tape tape;
      const TokenBatch sample = MakeTokenBatch(data_, {consumed_++}).value();
      const Value value = chunk_->Forward({.op = op_, .reader = reader_, .tape = &tape}, {},
                                          {sample.tokens, sample.targets});
      loss += value.tensor.data<float>()[0] / static_cast<double>(batch);
      const Tensor share = op_.Empty(value.tensor.shape(), DType::kF32);
      Fill(op_, 1.0f / static_cast<float>(batch), share);
      tape.Backward(op_, value, share, sink_);
    }
    return loss;
  }

  double GradNorm() const {
    double squares = 0.0;
    for (const Parameter* parameter : parameters()) squares += std::pow(Norm(*parameter), 2);
    return std::sqrt(squares);
  }

  void Update() {
    const nlohmann::json& adamw = golden_["adamw"];
    const float clip = ClipFactor(GradNorm(), adamw["clip"]);
    ++step_;
    for (const Parameter* parameter : parameters()) {
      auto& [m, v] = moments_[parameter];
      m.resize(static_cast<size_t>(parameter->numel()));
      v.resize(m.size());
      AdamW({.beta1 = adamw["beta1"], .beta2 = adamw["beta2"], .epsilon = adamw["epsilon"]},
            {.lr = adamw["lr"],
             .weight_decay = parameter->weight_decay() ? adamw["weight_decay"].get<float>() : 0.0f,
             .grad_scale = clip,
             .step = step_},
            absl::MakeSpan(reader_.value(*parameter).mutable_data<float>(), m.size()),
            absl::MakeSpan(m), absl::MakeSpan(v), sink_.Values(*parameter));
    }
  }

  absl::Span<const Parameter* const> parameters() const { return chunk_->registry().parameters(); }
  double Norm(const Parameter& parameter) const {
    double squares = 0.0;
    for (float g : sink_.Values(parameter)) squares += static_cast<double>(g) * g;
    return std::sqrt(squares);
  }
  double GradSum(const Parameter& parameter) const {
    const std::vector<float> g = sink_.Values(parameter);
    return std::accumulate(g.begin(), g.end(), 0.0);
  }
  double Sum(const Parameter& parameter) const {
    const float* value = reader_.value(parameter).data<float>();
    return std::accumulate(value, value + parameter.numel(), 0.0);
  }

 private:
  const nlohmann::json& golden_;
  CpuAllocator allocator_;
  InlineStream stream_{Device{}};
  const OpContext op_{.stream = &stream_, .allocator = &allocator_, .kernels = &cpu::Kernels()};
  const std::shared_ptr<comm::ProcessGroup> group_ = SelfGroup();
  const std::unique_ptr<GptChunk> chunk_;
  PlainReader reader_;
  MapSink sink_;
  const MockDataset data_;
  std::map<const Parameter*, std::pair<std::vector<float>, std::vector<float>>> moments_;
  int64_t consumed_ = 0;
  int64_t step_ = 0;
};

class GoldenTest : public testing::TestWithParam<Golden> {
 protected:
  GoldenTest() {
    std::ifstream file(std::string("tests/golden/") + GetParam().file);
    golden_ = nlohmann::json::parse(file);
  }
  nlohmann::json golden_;
};

TEST_P(GoldenTest, FirstStepHasTheGradientsOfPyTorch) {
  Trainee trainee(GetParam().config, golden_);
  const double loss = golden_["losses"][0];
  EXPECT_NEAR(trainee.Accumulate(), loss, kTolerance * loss);
  const nlohmann::json& expected = golden_["parameters"];
  ASSERT_EQ(trainee.parameters().size(), expected.size());
  for (const Parameter* parameter : trainee.parameters()) {
    const nlohmann::json& entry = expected.at(parameter->name());
    const double norm = entry["grad_norm"];
    const double numel = static_cast<double>(parameter->numel());
    EXPECT_EQ(
        entry["shape"].get<std::vector<int64_t>>(),
        std::vector<int64_t>(parameter->shape().dims().begin(), parameter->shape().dims().end()));
    EXPECT_NEAR(trainee.Sum(*parameter), entry["sum"], 1e-6 * numel) << parameter->name();
    EXPECT_NEAR(trainee.Norm(*parameter), norm, kTolerance * norm) << parameter->name();
    EXPECT_NEAR(trainee.GradSum(*parameter), entry["grad_sum"],
                kTolerance * norm * std::sqrt(numel))
        << parameter->name();
  }
}

TEST_P(GoldenTest, TenStepsOfAdamWHaveTheLossesOfPyTorch) {
  Trainee trainee(GetParam().config, golden_);
  for (size_t step = 0; step < golden_["losses"].size(); ++step) {
    const double loss = golden_["losses"][step];
    const double norm = golden_["grad_norms"][step];
    EXPECT_NEAR(trainee.Accumulate(), loss, kTolerance * loss) << "step " << step + 1;
    EXPECT_NEAR(trainee.GradNorm(), norm, kTolerance * norm) << "step " << step + 1;
    trainee.Update();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest,
                         testing::Values(Golden{"t0.json", TinyGpt2()},
                                         Golden{"llama.json", TinyLlama()}),
                         [](const auto& info) {
                           const std::string file = info.param.file;
                           return file.substr(0, file.find('.'));
                         });

}  // namespace
}  // namespace forerun
