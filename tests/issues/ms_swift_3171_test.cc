// SPDX-License-Identifier: Apache-2.0
// ms-swift 3171, DALLE2-pytorch 225: one layer used twice in a pass, also under recompute: its
// gradient was reduced after one of the uses, or the second use died. The kind of fault: a
// parameter taken for ready before all of its uses have contributed.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/autograd/testing/map_sink.h"
#include "core/autograd/testing/test_device.h"
#include "core/base/check.h"
#include "core/nn/testing/plain_reader.h"
#include "core/ops/copy.h"
#include "gtest/gtest.h"
#include "parallel/tensor_parallel/testing/rank_threads.h"
#include "tests/support/job.h"
#include "tests/support/letter_chunk.h"

namespace forerun {
namespace {

const Parameter& Named(const LetterChunk& chunk, absl::string_view name) {
  for (const Parameter* parameter : chunk.registry().parameters()) {
    if (parameter->name() == name) return *parameter;
  }
  FR_CHECK(false) << "no parameter " << name;
  return *chunk.registry().parameters()[0];
}

// Gives the value of A to whoever reads B.
class BothAreA final : public ParamReader {
 public:
  BothAreA(PlainReader& reader, const Parameter& a) : reader_(reader), a_(a) {}
  ParamLease Read(const Parameter& parameter, Stream& stream, absl::string_view reader) override {
    return reader_.Read(parameter.name() == "B" ? a_ : parameter, stream, reader);
  }

 private:
  PlainReader& reader_;
  const Parameter& a_;
};

LetterModel Model(const std::string& registered, const std::string& path, int segment) {
  LetterModel model = LetterModel::Running(path);
  model.registered = registered;
  model.segment = segment;
  return model;
}

// The gradient of each registered layer after one pass.
std::vector<std::vector<float>> Gradients(const LetterModel& model) {
  const TestDevice device(DeviceKind::kCpu);
  const auto group = SelfGroup();
  const LetterChunk chunk(model, *group, /*rank=*/0);
  PlainReader values(device.op(), chunk.registry(), /*seed=*/1);
  BothAreA reader(values, Named(chunk, "A"));
  Tape tape;
  const ForwardContext context{.op = device.op(), .reader = reader, .tape = &tape};
  const Tensor tokens = device.Tokens({4, 1}, {1, 5, 2, 7});
  const Value loss = chunk.Forward(context, {}, {tokens, tokens});
  const Tensor one = device.op().Empty({1}, DType::kF32);
  Fill(device.op(), 1.0f, one);
  MapSink sink(device.op());
  tape.Backward(device.op(), loss, one, sink);
  std::vector<std::vector<float>> gradients;
  for (char layer : model.registered) {
    gradients.push_back(sink.Values(Named(chunk, absl::string_view(&layer, 1))));
  }
  return gradients;
}

TEST(MsSwift3171, TheGradientIsTheSumOfBothUses) {
  const auto apart = Gradients(Model("AB", "AB", 0));
  for (int segment : {0, 1, 2}) {
    const std::vector<float> sum = Gradients(Model("A", "AA", segment))[0];
    for (size_t i = 0; i < sum.size(); ++i) {
      const float expected = apart[0][i] + apart[1][i];
      EXPECT_NEAR(sum[i], expected, 1e-7f + 1e-5f * std::abs(expected)) << i;
    }
    EXPECT_EQ(sum, Gradients(Model("A", "AA", 0))[0]) << "segments of " << segment;
  }
}

TEST(MsSwift3171, ALayerUsedTwiceIsReducedOnce) {
  JobSpec plain = T0();
  plain.dp = 2;
  plain.make_chunk = MakeLetterChunk(Model("BA", "ABA", 0));
  const auto expected = RunJob(plain);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (int segment : {0, 1, 3}) {
    JobSpec spec = T0Overlapped();
    spec.dp = 2;
    spec.options.data_parallel.bucket_numel = 1;  // a bucket a parameter
    spec.make_chunk = MakeLetterChunk(Model("BA", "ABA", segment));
    const auto result = RunJob(spec);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(BitDifference(*result, *expected), "") << "segments of " << segment;
    EXPECT_EQ(OncePerStepDifference(*result, spec.iterations), "");
    EXPECT_EQ(result->buckets[0], 3);
  }
}

}  // namespace
}  // namespace forerun
