// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/vocab_parallel_linear_cross_entropy.h"

#include <memory>

#include "core/autograd/testing/test_device.h"
#include "core/nn/functions.h"
#include "gtest/gtest.h"
#include "parallel/tensor_parallel/regions.h"
#include "parallel/tensor_parallel/split.h"
#include "parallel/tensor_parallel/testing/layer_case.h"
#include "parallel/tensor_parallel/vocab_parallel_cross_entropy.h"

namespace forerun {
namespace {

constexpr int64_t kPadded = 12, kHidden = 5, kValid = 7;

// Six tokens; of 12 columns the last five pad, so of four ranks one holds padding only. One
// operator in `fused`, with room for the logits of `rows` tokens on one rank, or the two it is.
LayerCase Case(DeviceKind device, bool fused, int64_t rows = 6) {
  return {.build =
              [=](ParameterRegistry& registry, comm::ProcessGroup& group) {
                const auto memory = std::make_shared<TestDevice>(device);
                const Tensor targets = memory->Tokens({3, 2}, {0, 6, 4, 5, 4, 2});
                const Shape shape = {kPadded, kHidden};
                const Parameter& table = registry.Declare(
                    {.name = "table", .global_shape = shape, .box = SplitBox(shape, 0, group)},
                    Init::Normal(0.5));
                return [=, &group, &table](const ForwardContext& context, const Value& input) {
                  (void)memory;  // owns what the targets lie in
                  const Value x = CopyToRegion(context, input, group);
                  if (!fused) {
                    const Value logits = Linear(context, x, table, nullptr, "output");
                    return VocabParallelCrossEntropy(context, logits, targets, kValid, group);
                  }
                  const LinearCrossEntropyOptions options{
                      .vocab_size = kValid,
                      .kept_bytes = rows * kPadded / group.size() * int64_t{sizeof(float)}};
                  return VocabParallelLinearCrossEntropy(context, x, table, targets, group, options,
                                                         "output");
                };
              },
          .input = {3, 2, kHidden}};
}

TEST(VocabParallelLinearCrossEntropy, IsTheLossOfTheWholeVocabulary) {
  ExpectEqualsOneRank(Case(DeviceKind::kCpu, /*fused=*/true));
}

TEST(VocabParallelLinearCrossEntropy, IsTheTwoOperatorsItIsMadeOf) {
  for (int64_t rows : {6, 4, 1}) {
    SCOPED_TRACE(rows);
    ExpectSameResults(Case(DeviceKind::kCpu, /*fused=*/true, rows),
                      Case(DeviceKind::kCpu, /*fused=*/false));
  }
}

TEST(VocabParallelLinearCrossEntropy, RunsOnMeta) {
  ExpectRunsOnMeta(Case(DeviceKind::kMeta, /*fused=*/true, 4));
}

}  // namespace
}  // namespace forerun
