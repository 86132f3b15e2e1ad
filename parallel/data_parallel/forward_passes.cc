// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/forward_passes.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace forerun {
namespace {

constexpr int kStepsToAdopt = 3;

}  // namespace

ForwardPasses::ForwardPasses(absl::Span<const ForwardOrderGraph* const> graphs,
                             ForwardOrderMode mode, ParamGate& gate, GradReducer& reducer,
                             comm::ProcessGroup& gather)
    : mode_(mode), gate_(gate), reducer_(reducer), adoption_(gather, kStepsToAdopt) {
  for (const ForwardOrderGraph* graph : graphs) {
    chunks_.push_back(std::make_unique<Watched>(*graph, gate));
  }
}

ParamReader& ForwardPasses::Begin(int chunk) {
  chunks_[chunk]->watch.BeginPass();
  return chunks_[chunk]->reader;
}

void ForwardPasses::End(int chunk) { chunks_[chunk]->watch.EndPass(); }

absl::Status ForwardPasses::EndOfStep(const OpContext& context) {
  for (const auto& chunk : chunks_) FR_RETURN_IF_ERROR(chunk->watch.status());
  const OrderWatch::Differences all = differences();
  if (mode_ == ForwardOrderMode::kStrict && all.passes > 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("forward order (--forward-order strict): ", all.first));
  }
  if (mode_ == ForwardOrderMode::kAdopt) Adopt(context);
  return absl::OkStatus();
}

void ForwardPasses::Adopt(const OpContext& context) {
  gate_.EndReads();  // this rank will wait for others, one of which may be waiting for a gather
  std::vector<const Parameter*> reads;
  for (const auto& chunk : chunks_) {
    reads.insert(reads.end(), chunk->watch.reads().begin(), chunk->watch.reads().end());
  }
  const std::vector<int> present = gate_.order();
  absl::optional<std::vector<int>> order =
      adoption_.OnStep(context, BucketOrderOf(reads, gate_.plan(), present), present);
  if (!order.has_value()) return;
  reducer_.SetOrder({order->rbegin(), order->rend()});
  gate_.SetOrder(*std::move(order), *context.stream);
  ++adoptions_;
}

OrderWatch::Differences ForwardPasses::differences() const {
  OrderWatch::Differences sum;
  for (const auto& chunk : chunks_) {
    const OrderWatch::Differences& one = chunk->watch.differences();
    sum.passes += one.passes;
    sum.reads += one.reads;
    if (sum.first.empty()) sum.first = one.first;
  }
  return sum;
}

}  // namespace forerun
