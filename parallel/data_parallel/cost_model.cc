// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/cost_model.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "core/base/check.h"
#include "core/tensor/dtype.h"

namespace forerun {
namespace {

// Formulas (1) to (4).
void PredictForward(const BucketPlan& plan, const ForwardTimeline& timeline, const Costs& costs,
                    Prediction& prediction) {
  double updated = 0.0, gathered = 0.0;
  for (size_t k = 0; k < plan.buckets().size(); ++k) {
    const Bucket& bucket = plan.buckets()[k];
    BucketPrediction& b = prediction.buckets[k];
    int64_t elements = 0;
    for (const BucketPiece& piece : bucket.pieces) elements += piece.numel;
    updated += costs.update * static_cast<double>(elements) / plan.shards();
    b.updated = updated;
    b.gather = costs.gather.Seconds(bucket.bytes());
    gathered = std::max(gathered, updated) + b.gather;
    b.gathered = gathered;
  }
  for (size_t k = 0; k < plan.buckets().size(); ++k) {
    const int first = plan.IndexOf(*plan.buckets()[k].pieces[0].parameter);
    BucketPrediction& b = prediction.buckets[k];
    b.wanted = updated + timeline.before[first];
    b.waited = std::max(0.0, b.gathered - b.wanted - prediction.stall);
    prediction.stall += b.waited;
  }
}

// Formulas (5) to (7).
void PredictBackward(const BucketPlan& plan, const ForwardTimeline& timeline, const Costs& costs,
                     Prediction& prediction) {
  double reduced = 0.0;
  for (size_t k = plan.buckets().size(); k-- > 0;) {
    const Bucket& bucket = plan.buckets()[k];
    const int first = plan.IndexOf(*bucket.pieces[0].parameter);
    BucketPrediction& b = prediction.buckets[k];
    b.ready = kBackwardOverForward * (timeline.total - timeline.before[first]);
    b.reduce = costs.reduce.Seconds(bucket.numel * SizeOf(DType::kF32));
    reduced = std::max(reduced, b.ready) + b.reduce;
    b.reduced = reduced;
  }
  prediction.tail = std::max(0.0, reduced - kBackwardOverForward * timeline.total);
}

}  // namespace

Costs Costs::Nominal() {
  Costs costs;
  costs.gather = costs.reduce = {50e-6, 1e-9};
  costs.flop = 1e-11;
  costs.byte = 1e-10;
  costs.update = kUpdateBytes * costs.byte;
  return costs;
}

std::string Costs::ToString() const {
  return absl::StrFormat(
      "costs: gather %.17g s + %.17g s/byte, reduce %.17g s + %.17g s/byte, %.17g s/flop, "
      "%.17g s/byte of memory, %.17g s/updated element",
      gather.alpha, gather.beta, reduce.alpha, reduce.beta, flop, byte, update);
}

ForwardTimeline TimelineOf(absl::Span<const ForwardOrderGraph* const> chunks, const Costs& costs) {
  ForwardTimeline timeline;
  for (const ForwardOrderGraph* chunk : chunks) {
    absl::flat_hash_map<const Parameter*, double> before;
    for (const Use& use : chunk->uses()) {
      before.emplace(use.parameter, timeline.total + costs.Seconds(use.before));  // the first stays
    }
    timeline.total += costs.Seconds(chunk->work());
    for (const Parameter* parameter : chunk->first_use_order()) {
      const auto found = before.find(parameter);
      timeline.before.push_back(found != before.end() ? found->second : timeline.total);
    }
  }
  return timeline;
}

Prediction Predict(const BucketPlan& plan, const ForwardTimeline& timeline, const Costs& costs) {
  FR_CHECK_EQ(timeline.before.size(), plan.parameters().size()) << "parameters of the timeline";
  Prediction prediction;
  prediction.buckets.resize(plan.buckets().size());
  PredictForward(plan, timeline, costs, prediction);
  PredictBackward(plan, timeline, costs, prediction);
  return prediction;
}

}  // namespace forerun
