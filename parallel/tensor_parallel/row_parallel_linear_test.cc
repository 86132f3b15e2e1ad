// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/row_parallel_linear.h"

#include <memory>

#include "gtest/gtest.h"
#include "parallel/tensor_parallel/testing/layer_case.h"

namespace forerun {
namespace {

LayerCase Case(bool bias) {
  return {.build =
              [=](ParameterRegistry& registry, comm::ProcessGroup& group) {
                const auto layer = std::make_shared<RowParallelLinear>(
                    registry, group, LinearSpec{.name = "proj", .weight = {6, 8}, .bias = bias});
                return [=](const ForwardContext& context, const Value& x) {
                  return layer->Forward(context, x);
                };
              },
          .input = {3, 2, 8},
          .split_input = true};
}

TEST(RowParallelLinear, SumsOverRanksAndAddsTheBiasOnce) {
  ExpectEqualsOneRank(Case(/*bias=*/true));
  ExpectEqualsOneRank(Case(/*bias=*/false));
}

TEST(RowParallelLinear, RunsOnMeta) { ExpectRunsOnMeta(Case(/*bias=*/true)); }

}  // namespace
}  // namespace forerun
