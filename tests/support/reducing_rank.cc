// SPDX-License-Identifier: Apache-2.0
#include "tests/support/reducing_rank.h"

#include <utility>

namespace forerun {
namespace {

// Small integers: any order of additions is exact.
float Gradient(int rank, int step, int microbatch, int64_t i) {
  return static_cast<float>((7 * rank + 3 * step + 5 * microbatch + i) % 64);
}

BucketPlanOptions PlanOptions(int shards, int64_t bucket_numel) {
  BucketPlanOptions options;
  options.shards = shards;
  options.bucket_numel = bucket_numel;
  return options;
}

}  // namespace

ReducingRank::ReducingRank(std::vector<const Parameter*> first_use_order, int64_t bucket_numel,
                           const OpContext& op, comm::ProcessGroup& group,
                           const GradReducer::Options& options, SecondsClock clock)
    : op_(op),
      group_(group),
      plan_(first_use_order, PlanOptions(group.size(), bucket_numel)),
      buffer_(plan_, {}, op),
      reducer_(buffer_, std::vector<int>(first_use_order.size(), 0), /*chunks=*/1, group, options,
               std::move(clock)) {}

void ReducingRank::Contribute(const Parameter& parameter, int step, int microbatch) {
  const GradSlot slot = reducer_.Slot(parameter);
  if (!slot.grad.is_meta()) {
    float* const grad = slot.grad.mutable_data<float>();
    for (int64_t i = 0; i < parameter.numel(); ++i) {
      const float value = Gradient(group_.rank(), step, microbatch, i);
      grad[i] = slot.accumulate ? grad[i] + value : value;
    }
  }
  reducer_.Contributed(parameter, op_.stream->Record());
}

void ReducingRank::Step(int step, int microbatches, const std::function<void()>& compute) {
  reducer_.BeginStep(microbatches);
  for (int m = 0; m < microbatches; ++m) reducer_.Announce(0, plan_.parameters());
  for (int m = 0; m < microbatches; ++m) {
    for (size_t p = plan_.parameters().size(); p-- > 0;) {
      if (compute) compute();
      Contribute(*plan_.parameters()[p], step, m);
    }
  }
  for (size_t b = plan_.buckets().size(); b-- > 0;) {
    reducer_.Wait(static_cast<int>(b), *op_.stream);
  }
}

int ReducingRank::WrongSums(int step, int microbatches) {
  const ShardWriter writer(buffer_, group_.rank());
  int wrong = 0;
  for (size_t b = 0; b < plan_.buckets().size(); ++b) {
    const Tensor sums = writer.Grads(static_cast<int>(b));
    for (const BucketPiece& piece : writer.Pieces(static_cast<int>(b))) {
      for (int64_t i = 0; i < piece.numel; ++i) {
        float expected = 0.0f;
        for (int rank = 0; rank < group_.size(); ++rank) {
          for (int m = 0; m < microbatches; ++m) {
            expected += Gradient(rank, step, m, piece.parameter_begin + i);
          }
        }
        wrong += sums.data<float>()[piece.bucket_begin + i] != expected;
      }
    }
  }
  return wrong;
}

}  // namespace forerun
