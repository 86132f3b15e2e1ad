// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/vocab_parallel_embedding.h"

#include <memory>

#include "core/autograd/functions.h"
#include "core/autograd/testing/test_device.h"
#include "gtest/gtest.h"
#include "parallel/tensor_parallel/testing/layer_case.h"

namespace forerun {
namespace {

// Adds the embedding of tokens of every rank's part, one of them twice, to x.
LayerCase Case(DeviceKind device) {
  return {
      .build =
          [device](ParameterRegistry& registry, comm::ProcessGroup& group) {
            const auto layer = std::make_shared<VocabParallelEmbedding>(
                registry, group,
                VocabParallelEmbeddingSpec{
                    .name = "word", .vocab_size = 12, .padded_vocab_size = 12, .hidden_size = 5});
            const auto memory = std::make_shared<TestDevice>(device);
            const Tensor tokens = memory->Tokens({3, 2}, {0, 11, 4, 7, 4, 2});
            return [=](const ForwardContext& context, const Value& x) {
              (void)memory;  // owns what the tokens lie in
              return Add(context, x, layer->Forward(context, tokens));
            };
          },
      .input = {3, 2, 5}};
}

TEST(VocabParallelEmbedding, EveryTokenIsLookedUpByTheRankThatHoldsIt) {
  ExpectEqualsOneRank(Case(DeviceKind::kCpu));
}

TEST(VocabParallelEmbedding, RunsOnMeta) { ExpectRunsOnMeta(Case(DeviceKind::kMeta)); }

}  // namespace
}  // namespace forerun
