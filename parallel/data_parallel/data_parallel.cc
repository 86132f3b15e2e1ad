// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/data_parallel.h"

#include <utility>

#include "core/base/status_macros.h"
#include "parallel/data_parallel/agreement.h"

namespace forerun {

BucketPlan PlanBuckets(absl::Span<const DataParallel::Chunk> chunks, int data_parallel_size,
                       const DataParallelOptions& options) {
  std::vector<const Parameter*> order;
  for (const DataParallel::Chunk& chunk : chunks) {
    const auto first_use = chunk.graph.first_use_order();
    order.insert(order.end(), first_use.begin(), first_use.end());
  }
  BucketPlanOptions plan;
  plan.shards = options.shard_optimizer ? data_parallel_size : 1;
  plan.bucket_numel = options.bucket_numel;
  return BucketPlan(order, plan);
}

absl::StatusOr<std::unique_ptr<DataParallel>> DataParallel::Create(
    const OpContext& context, const DataParallelGroups& groups, std::vector<Chunk> chunks,
    const DataParallelOptions& options, SecondsClock clock) {
  BucketPlan plan = PlanBuckets(chunks, groups.reduce->size(), options);
  for (comm::ProcessGroup* group : {groups.reduce, groups.tensor_parallel}) {
    FR_RETURN_IF_ERROR(CheckAgreement(context, *group, "bucket plan", plan.ToString()));
  }

  std::vector<const Parameter*> frozen;
  std::vector<int> chunk_of_parameter(plan.parameters().size(), 0);
  for (size_t c = 0; c < chunks.size(); ++c) {
    for (const Parameter* parameter : chunks[c].parameters) {
      if (parameter->trainable()) {
        chunk_of_parameter[plan.IndexOf(*parameter)] = static_cast<int>(c);
      } else {
        frozen.push_back(parameter);
      }
    }
  }
  const int chunk_count = static_cast<int>(chunks.size());
  auto result = std::unique_ptr<DataParallel>(
      new DataParallel(std::move(chunks), std::move(plan), groups.gather->rank()));
  result->buffer_ = std::make_unique<BucketBuffer>(result->plan_, frozen, context);
  result->reducer_ = std::make_unique<GradReducer>(
      *result->buffer_, std::move(chunk_of_parameter), chunk_count, *groups.reduce,
      GradReducer::Options{options.overlap_grad_reduce}, clock);
  ParamGate::Options gate;
  gate.overlap = options.overlap_param_gather;
  gate.poison = options.poison_stale_params;
  result->gate_ =
      std::make_unique<ParamGate>(*result->buffer_, *groups.gather, gate, std::move(clock));
  std::vector<const ForwardOrderGraph*> graphs;
  for (const Chunk& chunk : result->chunks_) graphs.push_back(&chunk.graph);
  result->forward_passes_ = std::make_unique<ForwardPasses>(
      graphs, options.forward_order, *result->gate_, *result->reducer_, *groups.gather);
  return result;
}

}  // namespace forerun
