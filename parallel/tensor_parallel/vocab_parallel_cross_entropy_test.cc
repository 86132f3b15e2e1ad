// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/vocab_parallel_cross_entropy.h"

#include <memory>

#include "core/autograd/testing/test_device.h"
#include "gtest/gtest.h"
#include "parallel/tensor_parallel/testing/layer_case.h"

namespace forerun {
namespace {

constexpr int64_t kPadded = 12;

// x are the logits of 12 columns, of which the last five pad: with four ranks one holds padding
// only, and one holds some.
LayerCase Case(DeviceKind device) {
  return {.build =
              [device](ParameterRegistry&, comm::ProcessGroup& group) {
                const auto memory = std::make_shared<TestDevice>(device);
                const Tensor targets = memory->Tokens({3, 2}, {0, 6, 4, 5, 4, 2});
                return [=, &group](const ForwardContext& context, const Value& x) {
                  (void)memory;  // owns what the targets lie in
                  return VocabParallelCrossEntropy(context, x, targets, 7, group);
                };
              },
          .input = {3, 2, kPadded},
          .split_input = true};
}

TEST(VocabParallelCrossEntropy, LossAndGradientAreThoseOfTheWholeVocabulary) {
  ExpectEqualsOneRank(Case(DeviceKind::kCpu));
}

TEST(VocabParallelCrossEntropy, RunsOnMeta) { ExpectRunsOnMeta(Case(DeviceKind::kMeta)); }

}  // namespace
}  // namespace forerun
