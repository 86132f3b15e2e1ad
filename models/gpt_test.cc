// SPDX-License-Identifier: Apache-2.0
#include "models/gpt.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/autograd/testing/map_sink.h"
#include "core/autograd/testing/test_device.h"
#include "core/nn/testing/plain_reader.h"
#include "core/ops/copy.h"
#include "gtest/gtest.h"
#include "models/gpt2.h"
#include "models/llama.h"
#include "models/testing/whole_model.h"
#include "parallel/tensor_parallel/testing/rank_threads.h"

namespace forerun {
namespace {

constexpr int64_t kSeq = 8;
constexpr int64_t kBatch = 2;

GptConfig Shrink(GptConfig config) {
  config.num_layers = 3;
  config.hidden_size = 16;
  config.ffn_hidden_size = 24;
  config.seq_length = kSeq;
  config.max_position_embeddings = kSeq + 1;
  config.vocab_size = 29;
  config.padded_vocab_size = 32;
  config.init_method_std = 0.2;
  return config;
}

std::vector<int32_t> SomeTokens(int64_t vocab_size, int32_t salt) {
  std::vector<int32_t> tokens(kSeq * kBatch);
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>((7 * i * i + 3 * i + salt) % vocab_size);
  }
  return tokens;
}

WholeModelCase Case(const GptConfig& config) {
  return {.config = config,
          .s = kSeq,
          .b = kBatch,
          .tokens = SomeTokens(config.vocab_size, 1),
          .targets = SomeTokens(config.vocab_size, 28)};
}

void ExpectSameRun(const WholeModelRun& run, const WholeModelRun& expected) {
  EXPECT_NEAR(run.loss, expected.loss, 1e-5 * expected.loss);
  ASSERT_EQ(run.gradients.size(), expected.gradients.size());
  for (const auto& [name, gradient] : expected.gradients) {
    const std::vector<double>& other = run.gradients.at(name);
    ASSERT_EQ(other.size(), gradient.size()) << name;
    double largest = 1e-3;  // key biases have no gradient but rounding
    for (double g : gradient) largest = std::max(largest, std::fabs(g));
    for (size_t i = 0; i < gradient.size(); ++i) {
      ASSERT_NEAR(other[i], gradient[i], 1e-5 * largest) << name << " element " << i;
    }
  }
}

// Dropout and all kinds of layers on: nothing may depend on where the model was cut.
void ExpectSameInEveryLayout(const GptConfig& config) {
  const WholeModelCase model = Case(config);
  const WholeModelRun whole = RunWholeModel(model);
  EXPECT_GT(whole.loss, 0.5 * std::log(29.0));
  for (const auto& [tensor_parallel, stages] :
       {std::pair<int, int>{2, 1}, {1, 2}, {2, 2}, {1, 3}}) {
    SCOPED_TRACE(testing::Message() << "tp " << tensor_parallel << " pp " << stages);
    ExpectSameRun(RunWholeModel(model, tensor_parallel, stages), whole);
  }
}

TEST(GptChunk, Gpt2IsTheSameInEveryLayout) {
  GptConfig config = Shrink(TinyGpt2());
  config.hidden_dropout = 0.1f;
  config.attention_dropout = 0.1f;
  ExpectSameInEveryLayout(config);
}

TEST(GptChunk, TiedGpt2WithPostSublayerNormsIsTheSameInEveryLayout) {
  GptConfig config = Shrink(TinyGpt2());
  config.tied_embeddings = true;
  config.post_sublayer_norms = true;
  ExpectSameInEveryLayout(config);
}

TEST(GptChunk, LlamaIsTheSameInEveryLayout) {
  GptConfig config = Shrink(TinyLlama());
  config.hidden_dropout = 0.1f;
  config.attention_dropout = 0.1f;
  ExpectSameInEveryLayout(config);
}

// Activations and weights of 8 bits' precision, sums and the loss in fp32.
TEST(GptChunk, Bf16LossIsNearThatOfFp32) {
  for (GptConfig config : {Shrink(TinyGpt2()), Shrink(TinyLlama())}) {
    const double loss = RunWholeModel(Case(config)).loss;
    config.dtype = DType::kBF16;
    for (int tensor_parallel : {1, 2}) {
      EXPECT_NEAR(RunWholeModel(Case(config), tensor_parallel, 2).loss, loss, 0.01 * loss);
    }
  }
}

TEST(GptChunk, RegistrationOrderChangesIdsOnly) {
  WholeModelCase model = Case(Shrink(TinyGpt2()));
  const WholeModelRun forward = RunWholeModel(model);
  for (const char* order : {"reversed", "mlp-first", "shuffled:3"}) {
    model.order = RegistrationOrder::Parse(order).value();
    const WholeModelRun run = RunWholeModel(model);
    EXPECT_EQ(run.loss, forward.loss) << order;
    EXPECT_EQ(run.gradients, forward.gradients) << order;
  }
}

std::vector<std::string> Names(const GptChunk& chunk) {
  std::vector<std::string> names;
  for (const Parameter* parameter : chunk.registry().parameters()) {
    names.push_back(parameter->name());
  }
  return names;
}

std::unique_ptr<GptChunk> Chunk(const GptConfig& config, GptChunk::Stage stage,
                                comm::ProcessGroup& group) {
  return GptChunk::Create(config, stage, group).value();
}

TEST(GptChunk, PostSublayerNormsAreRegisteredLastInTheirLayer) {
  GptConfig config = TinyLlama();
  config.num_layers = 1;
  config.post_sublayer_norms = true;
  const auto group = SelfGroup();
  const std::vector<std::string> expected = {"embedding.word_embeddings.weight",
                                             "layers.0.input_norm.weight",
                                             "layers.0.attention.qkv.weight",
                                             "layers.0.attention.proj.weight",
                                             "layers.0.pre_mlp_norm.weight",
                                             "layers.0.mlp.fc1.weight",
                                             "layers.0.mlp.fc2.weight",
                                             "layers.0.post_attention_norm.weight",
                                             "layers.0.post_mlp_norm.weight",
                                             "final_norm.weight",
                                             "output.weight"};
  EXPECT_EQ(Names(*Chunk(config, {}, *group)), expected);
}

TEST(GptChunk, ParameterCountIsTheSumOfItsParameters) {
  const auto group = SelfGroup();
  for (GptConfig config : {TinyGpt2(), TinyLlama()}) {
    for (const bool other : {false, true}) {
      config.tied_embeddings = other;
      config.post_sublayer_norms = other;
      int64_t count = 0;
      const auto chunk = Chunk(config, {}, *group);
      for (const Parameter* parameter : chunk->registry().parameters()) {
        count += parameter->numel();
      }
      EXPECT_EQ(config.ParameterCount(), count);
    }
  }
}

TEST(GptChunk, WeightsDecayButNormsAndBiasesDoNot) {
  const auto group = SelfGroup();
  const auto chunk = Chunk(TinyGpt2(), {}, *group);
  for (const Parameter* parameter : chunk->registry().parameters()) {
    const bool vector = parameter->shape().rank() == 1;
    EXPECT_EQ(parameter->weight_decay(), !vector) << parameter->name();
  }
}

// Where first and last stage are two, each has the table under its one name.
TEST(GptChunk, TiedTableHasOnePrimaryCopy) {
  GptConfig config = TinyGpt2();
  config.tied_embeddings = true;
  const auto group = SelfGroup();
  const auto whole = Chunk(config, {}, *group);
  const auto first = Chunk(config, {.stage = 0, .stages = 2}, *group);
  const auto last = Chunk(config, {.stage = 1, .stages = 2}, *group);
  const auto find = [](const GptChunk& chunk) -> const Parameter& {
    const auto all = chunk.registry().parameters();
    return **std::find_if(all.begin(), all.end(), [](const Parameter* p) {
      return p->name() == "embedding.word_embeddings.weight";
    });
  };
  EXPECT_EQ(find(*whole).sharing(), Sharing::kNone);
  EXPECT_EQ(find(*first).sharing(), Sharing::kPrimary);
  EXPECT_EQ(find(*last).sharing(), Sharing::kCopy);
  EXPECT_EQ(first->registry().init(find(*first)).stddev, last->registry().init(find(*last)).stddev);
  EXPECT_EQ(find(*first).global_shape(), find(*last).global_shape());
}

TEST(GptChunk, CreateNamesWhatIsWrong) {
  const auto group = SelfGroup();
  GptConfig config = TinyGpt2();
  EXPECT_EQ(GptChunk::Create(config, {.stage = 0, .stages = 5}, *group).status().message(),
            "4 layers cannot be split over 5 pipeline stages: each needs one");
  config.hidden_size = 63;
  EXPECT_EQ(GptChunk::Create(config, {}, *group).status().message(),
            "hidden_size 63 is not a multiple of num_attention_heads 4");
}

// Plain gradient descent on one batch.
std::vector<float> Losses(const GptConfig& config, int steps) {
  const auto group = SelfGroup();
  const TestDevice device(DeviceKind::kCpu);
  const auto chunk = Chunk(config, {}, *group);
  PlainReader reader(device.op(), chunk->registry(), 1);
  const Tensor tokens = device.Tokens({kSeq, kBatch}, SomeTokens(config.vocab_size, 1));
  const Tensor targets = device.Tokens({kSeq, kBatch}, SomeTokens(config.vocab_size, 28));
  std::vector<float> losses;
  for (int step = 0; step < steps; ++step) {
    Tape tape;
    const Value loss =
        chunk->Forward({.op = device.op(), .reader = reader, .tape = &tape}, {}, {tokens, targets});
    losses.push_back(loss.tensor.data<float>()[0]);
    Tensor one = device.op().Empty(loss.tensor.shape(), DType::kF32);
    Fill(device.op(), 1.0f, one);
    MapSink sink(device.op());
    tape.Backward(device.op(), loss, one, sink);
    for (const Parameter* parameter : chunk->registry().parameters()) {
      float* value = reader.value(*parameter).mutable_data<float>();
      const std::vector<float> gradient = sink.Values(*parameter);
      for (size_t i = 0; i < gradient.size(); ++i) value[i] -= 0.02f * gradient[i];
    }
  }
  return losses;
}

TEST(GptChunk, LossFallsStepByStep) {
  for (const GptConfig& config : {Shrink(TinyGpt2()), Shrink(TinyLlama())}) {
    const std::vector<float> losses = Losses(config, 6);
    for (size_t i = 1; i < losses.size(); ++i) EXPECT_LT(losses[i], losses[i - 1]) << i;
  }
}

TEST(GptChunk, AHugeModelRunsOnMeta) {
  GptConfig config = Gpt2_124M();
  config.num_layers = 2;
  config.hidden_size = 8192;
  config.ffn_hidden_size = 4 * 8192;
  config.num_attention_heads = config.num_query_groups = 64;
  const auto group = FakeGroup(/*rank=*/3, /*size=*/8);
  const TestDevice device(DeviceKind::kMeta);
  const auto first = Chunk(config, {.stage = 0, .stages = 2}, *group);
  const auto last = Chunk(config, {.stage = 1, .stages = 2}, *group);
  PlainReader first_reader(device.op(), first->registry(), 0);
  PlainReader last_reader(device.op(), last->registry(), 0);
  const Tensor tokens = device.op().Empty({1024, 4}, DType::kI32);
  Tape first_tape;
  Tape last_tape;
  const Value x = first->Forward({.op = device.op(), .reader = first_reader, .tape = &first_tape},
                                 {}, {tokens, tokens});
  EXPECT_EQ(x.tensor.shape(), first->ActivationShape(1024, 4));
  EXPECT_EQ(x.tensor.dtype(), first->activation_dtype());
  const Value input = last_tape.Leaf(x.tensor);
  const Value loss = last->Forward({.op = device.op(), .reader = last_reader, .tape = &last_tape},
                                   input, {tokens, tokens});
  EXPECT_EQ(loss.tensor.numel(), 1);
  MapSink sink(device.op());
  last_tape.Backward(device.op(), loss, device.op().Empty(loss.tensor.shape(), DType::kF32), sink);
  EXPECT_EQ(last_tape.LeafGradient(input).shape(), x.tensor.shape());
}

}  // namespace
}  // namespace forerun
