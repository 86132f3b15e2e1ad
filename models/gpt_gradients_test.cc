// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "core/autograd/testing/function_check.h"
#include "core/autograd/testing/test_device.h"
#include "core/nn/testing/plain_reader.h"
#include "gtest/gtest.h"
#include "models/gpt.h"
#include "models/gpt2.h"
#include "models/llama.h"
#include "parallel/tensor_parallel/testing/rank_threads.h"

namespace forerun {
namespace {

// The whole model but for the loss, in fp64: all gradients against central differences.
void ExpectModelGradients(GptConfig config) {
  config.num_layers = 1;
  config.hidden_size = 8;
  config.ffn_hidden_size = 6;
  config.num_attention_heads = 2;
  config.num_query_groups = 1;
  config.seq_length = 4;
  config.max_position_embeddings = 5;
  config.vocab_size = config.padded_vocab_size = 13;
  config.init_method_std = 0.6;  // so that norms are not steep, nor differences rough
  config.dtype = DType::kF64;
  const auto group = SelfGroup();
  const TestDevice device(DeviceKind::kCpu);
  const auto chunk = GptChunk::Create(config, {}, *group).value();
  PlainReader reader(device.op(), chunk->registry(), 3);
  std::vector<TestWeight> weights;
  for (const Parameter* parameter : chunk->registry().parameters()) {
    const bool table = parameter->name() == "embedding.word_embeddings.weight";
    weights.push_back(
        {parameter, reader.value(*parameter), table && config.tied_embeddings ? 2 : 1});
  }
  const Tensor tokens = device.Tokens({4, 2}, {1, 12, 5, 0, 5, 7, 3, 9});
  ExpectGradients(
      {.op = device.op(), .reader = reader},
      [&](const ForwardContext& context, absl::Span<const Value>) {
        return chunk->Logits(context, {}, tokens);
      },
      {}, weights);
}

// Megatron-LM 1548: a tied table's gradient has an input part and an output part.
TEST(GptGradients, OfATiedGpt2AreDifferentials) {
  GptConfig config = TinyGpt2();
  config.tied_embeddings = true;
  config.post_sublayer_norms = true;
  ExpectModelGradients(config);
}

TEST(GptGradients, OfALlamaAreDifferentials) { ExpectModelGradients(TinyLlama()); }

}  // namespace
}  // namespace forerun
