// SPDX-License-Identifier: Apache-2.0
#include "parallel/tensor_parallel/column_parallel_linear.h"

#include <memory>

#include "core/autograd/functions.h"
#include "gtest/gtest.h"
#include "parallel/tensor_parallel/row_parallel_linear.h"
#include "parallel/tensor_parallel/testing/layer_case.h"

namespace forerun {
namespace {

LayerCase Case(bool bias, GeluKind gelu) {
  return {.build =
              [=](ParameterRegistry& registry, comm::ProcessGroup& group) {
                const auto layer = std::make_shared<ColumnParallelLinear>(
                    registry, group, LinearSpec{.name = "fc", .weight = {8, 6}, .bias = bias});
                return [=](const ForwardContext& context, const Value& x) {
                  if (gelu == GeluKind::kNone) return layer->Forward(context, x);
                  return layer->ForwardGelu(context, x, gelu);
                };
              },
          .input = {3, 2, 6},
          .split_output = true};
}

TEST(ColumnParallelLinear, HoldsTheOutputFeaturesOfItsRank) {
  ExpectEqualsOneRank(Case(/*bias=*/true, GeluKind::kNone));
  ExpectEqualsOneRank(Case(/*bias=*/false, GeluKind::kNone));
}

TEST(ColumnParallelLinear, GeluActsOnTheFeaturesOfItsRank) {
  ExpectEqualsOneRank(Case(/*bias=*/true, GeluKind::kTanh));
}

TEST(ColumnParallelLinear, SplitsEachPartOfAGatedWeight) {
  ExpectEqualsOneRank({.build =
                           [](ParameterRegistry& registry, comm::ProcessGroup& group) {
                             const auto fc1 = std::make_shared<ColumnParallelLinear>(
                                 registry, group, LinearSpec{.name = "fc1", .weight = {2, 8, 6}});
                             const auto fc2 = std::make_shared<RowParallelLinear>(
                                 registry, group, LinearSpec{.name = "fc2", .weight = {6, 8}});
                             return [=](const ForwardContext& context, const Value& x) {
                               const Value y = Swiglu(context, fc1->Forward(context, x));
                               return fc2->Forward(context, y);
                             };
                           },
                       .input = {3, 2, 6}});
}

TEST(ColumnParallelLinear, RunsOnMeta) { ExpectRunsOnMeta(Case(/*bias=*/true, GeluKind::kTanh)); }

}  // namespace
}  // namespace forerun
