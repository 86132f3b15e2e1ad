// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/data_parallel.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "parallel/data_parallel/agreement.h"
#include "parallel/data_parallel/bucket_cuts.h"
#include "parallel/data_parallel/measure_costs.h"

namespace forerun {
namespace {

// By name: in which order parameters were registered is nobody's business.
std::string DescribeParameters(absl::Span<const Parameter* const> parameters) {
  static constexpr const char* kKinds[] = {"trainable", "optional", "frozen"};
  std::vector<std::string> lines;
  for (const Parameter* parameter : parameters) {
    lines.push_back(absl::StrCat("parameter ", parameter->name(), ": ", NameOf(parameter->dtype()),
                                 " ", parameter->shape().ToString(), " of ",
                                 parameter->global_shape().ToString(), ", ",
                                 kKinds[static_cast<int>(parameter->kind())], "\n"));
  }
  std::sort(lines.begin(), lines.end());
  return absl::StrJoin(lines, "");
}

// What a forward pass always reads. Of an optional parameter one rank may have recorded a use, and
// another none.
std::string DescribeUses(const ForwardOrderGraph& graph) {
  std::string text;
  for (const Use& use : graph.uses()) {
    if (use.parameter->kind() == ParameterKind::kOptional) continue;
    absl::StrAppend(&text, "use of ", use.parameter->name(), " by ", use.reader, "\n");
  }
  return text;
}

std::string DescribeModel(absl::Span<const DataParallel::Chunk> chunks) {
  std::string text;
  for (const DataParallel::Chunk& chunk : chunks) {
    absl::StrAppend(&text, DescribeParameters(chunk.parameters), DescribeUses(chunk.graph));
    for (const Parameter* parameter : chunk.graph.first_use_order()) {
      absl::StrAppend(&text, "in order of first use: ", parameter->name(), "\n");
    }
  }
  return text;
}

absl::Status CheckAll(const OpContext& context, const DataParallelGroups& groups,
                      absl::string_view what, const std::string& text) {
  for (comm::ProcessGroup* group : {groups.reduce, groups.tensor_parallel}) {
    FR_RETURN_IF_ERROR(CheckAgreement(context, *group, what, text));
  }
  return absl::OkStatus();
}

std::vector<const ForwardOrderGraph*> GraphsOf(absl::Span<const DataParallel::Chunk> chunks) {
  std::vector<const ForwardOrderGraph*> graphs;
  for (const DataParallel::Chunk& chunk : chunks) graphs.push_back(&chunk.graph);
  return graphs;
}

std::vector<const Parameter*> OrderOf(absl::Span<const DataParallel::Chunk> chunks) {
  std::vector<const Parameter*> order;
  for (const DataParallel::Chunk& chunk : chunks) {
    const auto first_use = chunk.graph.first_use_order();
    order.insert(order.end(), first_use.begin(), first_use.end());
  }
  return order;
}

// What buckets are planned from, beside order and options.
struct Basis {
  Costs costs;
  ForwardTimeline timeline;
};

Costs CostsOf(const OpContext& context, const DataParallelGroups& groups,
              absl::Span<const DataParallel::Chunk> chunks, const DataParallelOptions& options,
              const SecondsClock& clock) {
  if (options.costs.has_value()) return *options.costs;
  if (options.bucket_numel.has_value() || groups.reduce->size() == 1) return Costs::Nominal();
  return MeasureCosts(context, groups, ProbeOf(GraphsOf(chunks)), clock);
}

// Where the plan depends on it, the same on all ranks: how much compute each has recorded need not
// be.
Basis AgreedBasis(const OpContext& context, const DataParallelGroups& groups,
                  absl::Span<const DataParallel::Chunk> chunks, const DataParallelOptions& options,
                  const SecondsClock& clock) {
  Basis basis{CostsOf(context, groups, chunks, options, clock), {}};
  basis.timeline = TimelineOf(GraphsOf(chunks), basis.costs);
  if (options.bucket_numel.has_value()) return basis;
  for (comm::ProcessGroup* group : {groups.tensor_parallel, groups.reduce}) {
    std::vector<double> times = basis.timeline.before;
    times.push_back(basis.timeline.total);
    TakeLargest(context, *group, absl::MakeSpan(times));
    basis.timeline.total = times.back();
    times.pop_back();
    basis.timeline.before = std::move(times);
  }
  return basis;
}

BucketPlan PlanFrom(const Basis& basis, absl::Span<const DataParallel::Chunk> chunks,
                    int data_parallel_size, const DataParallelOptions& options) {
  const std::vector<const Parameter*> order = OrderOf(chunks);
  BucketPlanOptions plan;
  plan.shards = options.shard_optimizer ? data_parallel_size : 1;
  plan.bucket_numel = options.bucket_numel;
  if (!plan.bucket_numel.has_value()) {
    plan = WithBestCuts(order, basis.timeline, basis.costs, plan);
  }
  return BucketPlan(order, plan);
}

// A group of one has nothing to move.
Costs CostsWithin(const DataParallelGroups& groups, Costs costs) {
  if (groups.gather->size() == 1) costs.gather = {};
  if (groups.reduce->size() == 1) costs.reduce = {};
  return costs;
}

}  // namespace

BucketPlan PlanBuckets(absl::Span<const DataParallel::Chunk> chunks, int data_parallel_size,
                       const DataParallelOptions& options) {
  const Costs costs = options.costs.has_value() ? *options.costs : Costs::Nominal();
  return PlanFrom({costs, TimelineOf(GraphsOf(chunks), costs)}, chunks, data_parallel_size,
                  options);
}

absl::StatusOr<std::unique_ptr<DataParallel>> DataParallel::Create(
    const OpContext& context, const DataParallelGroups& groups, std::vector<Chunk> chunks,
    const DataParallelOptions& options, SecondsClock clock) {
  // Before anything is measured: where the model is another one, that is what ranks are told.
  FR_RETURN_IF_ERROR(CheckAll(context, groups, "model", DescribeModel(chunks)));
  const Basis basis = AgreedBasis(context, groups, chunks, options, clock);
  BucketPlan plan = PlanFrom(basis, chunks, groups.reduce->size(), options);
  // Gathers are issued in the order of the buckets, and reductions in the reverse.
  FR_RETURN_IF_ERROR(CheckAll(context, groups, "bucket plan",
                              absl::StrCat(basis.costs.ToString(), "\n", plan.ToString())));
  Prediction prediction = Predict(plan, basis.timeline, CostsWithin(groups, basis.costs));

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
  auto result = std::unique_ptr<DataParallel>(new DataParallel(std::move(chunks), std::move(plan),
                                                               basis.costs, std::move(prediction),
                                                               groups.gather->rank()));
  result->buffer_ = std::make_unique<BucketBuffer>(result->plan_, frozen, context);
  result->reducer_ = std::make_unique<GradReducer>(
      *result->buffer_, std::move(chunk_of_parameter), chunk_count, *groups.reduce,
      GradReducer::Options{options.overlap_grad_reduce}, clock);
  ParamGate::Options gate;
  gate.overlap = options.overlap_param_gather;
  gate.window_bytes = options.gather_window_bytes;
  gate.poison = options.poison_stale_params;
  result->gate_ =
      std::make_unique<ParamGate>(*result->buffer_, *groups.gather, gate, std::move(clock));
  result->forward_passes_ =
      std::make_unique<ForwardPasses>(GraphsOf(result->chunks_), options.forward_order,
                                      *result->gate_, *result->reducer_, *groups.gather);
  return result;
}

}  // namespace forerun
