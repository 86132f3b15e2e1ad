// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/grad_reducer.h"

#include <utility>

#include "core/base/check.h"

namespace forerun {
namespace {

ReducePlan PlanOf(const BucketPlan& plan, std::vector<int> chunk_of_parameter, int chunks) {
  ReducePlan reduce;
  for (const Bucket& bucket : plan.buckets()) {
    std::vector<int>& parameters = reduce.parameters_of_bucket.emplace_back();
    for (const BucketPiece& piece : bucket.pieces) {
      parameters.push_back(plan.IndexOf(*piece.parameter));
    }
  }
  for (int b = static_cast<int>(plan.buckets().size()) - 1; b >= 0; --b) reduce.order.push_back(b);
  reduce.chunk_of_parameter = std::move(chunk_of_parameter);
  reduce.chunks = chunks;
  return reduce;
}

std::vector<int64_t> GradBytes(const BucketPlan& plan) {
  std::vector<int64_t> bytes;
  for (const Bucket& bucket : plan.buckets()) bytes.push_back(bucket.numel * SizeOf(DType::kF32));
  return bytes;
}

}  // namespace

GradReducer::GradReducer(BucketBuffer& buffer, std::vector<int> chunk_of_parameter, int chunks,
                         comm::ProcessGroup& group, const Options& options, SecondsClock clock)
    : buffer_(buffer),
      group_(group),
      options_(options),
      log_(std::make_shared<TransferLog>(GradBytes(buffer.plan()), std::move(clock))),
      reduce_(PlanOf(buffer.plan(), std::move(chunk_of_parameter), chunks)),
      works_(buffer.plan().buckets().size()),
      ids_(buffer.plan().buckets().size(), -1) {}

GradReducer::~GradReducer() {
  for (const comm::Work& work : works_) {
    try {
      work.Synchronize();
    } catch (const comm::GroupError&) {
      // Thrown where it mattered; here it only ends the waiting.
    }
  }
}

void GradReducer::BeginStep(int microbatches) {
  reduce_.BeginStep(microbatches);
  ++step_;
}

void GradReducer::Announce(int chunk, absl::Span<const Parameter* const> contributions) {
  std::vector<int> indices;
  for (const Parameter* parameter : contributions) {
    indices.push_back(buffer_.plan().IndexOf(*parameter));
  }
  Execute(reduce_.OnAnnounced(chunk, indices));
}

GradSlot GradReducer::Slot(const Parameter& parameter) {
  const int index = buffer_.plan().IndexOf(parameter);
  return GradSlot{buffer_.Grad(parameter), !reduce_.FirstContribution(index)};
}

void GradReducer::Contributed(const Parameter& parameter, std::shared_ptr<const Event> event) {
  event->Synchronize();
  Execute(reduce_.OnContributed(buffer_.plan().IndexOf(parameter)));
}

void GradReducer::Execute(const GradReduce::Commands& commands) {
  for (int index : commands.zero_fill) {
    buffer_.Grad(*buffer_.plan().parameters()[index]).Clear();
  }
  pending_.insert(pending_.end(), commands.reduce.begin(), commands.reduce.end());
  if (options_.overlap) IssuePending();
}

void GradReducer::IssuePending() {
  for (int bucket : pending_) {
    const int64_t id = ids_[bucket] = log_->Issued(bucket, step_);
    log_->Started(id);
    works_[bucket] = Reduce(bucket);
    works_[bucket].OnDone([log = log_, id](const absl::Status& status) {
      if (status.ok()) log->Ended(id);
    });
  }
  pending_.clear();
}

comm::Work GradReducer::Reduce(int bucket) {
  const Tensor grads = buffer_.GradBucket(bucket);
  if (buffer_.plan().shards() == 1) return group_.AllReduce(grads, comm::ReduceOp::kSum);
  FR_CHECK_EQ(buffer_.plan().shards(), group_.size()) << "shards, and ranks that reduce";
  return group_.ReduceScatter(grads, ShardWriter(buffer_, group_.rank()).Grads(bucket),
                              comm::ReduceOp::kSum);
}

void GradReducer::Wait(int bucket, Stream& stream) {
  FR_CHECK(reduce_.AllIssued()) << "the optimizer runs before the last backward pass has ended";
  IssuePending();
  const double begin = log_->Now();
  log_->Wanted(ids_[bucket], begin);
  const bool blocked = !works_[bucket].Done();
  works_[bucket].Wait(stream);
  log_->Ended(ids_[bucket]);  // a wait may return before the completion has run
  if (blocked) log_->Waited(ids_[bucket], log_->Now() - begin, false, "the optimizer");
}

}  // namespace forerun
