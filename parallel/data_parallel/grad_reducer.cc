// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/grad_reducer.h"

#include <cstring>
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

}  // namespace

GradReducer::GradReducer(BucketBuffer& buffer, std::vector<int> chunk_of_parameter, int chunks,
                         comm::ProcessGroup& group, const Options& options, SecondsClock clock)
    : buffer_(buffer),
      group_(group),
      options_(options),
      clock_(std::move(clock)),
      reduce_(PlanOf(buffer.plan(), std::move(chunk_of_parameter), chunks)),
      works_(buffer.plan().buckets().size()),
      records_(buffer.plan().buckets().size()) {
  for (size_t b = 0; b < records_.size(); ++b) {
    records_[b].bytes = buffer.GradBucket(static_cast<int>(b)).bytes();
  }
}

GradReducer::~GradReducer() {
  for (const comm::Work& work : works_) {
    try {
      work.Synchronize();
    } catch (const comm::GroupError&) {
      // Thrown where it mattered; here it only ends the waiting.
    }
  }
}

void GradReducer::BeginStep(int microbatches) { reduce_.BeginStep(microbatches); }

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
    const Tensor grad = buffer_.Grad(*buffer_.plan().parameters()[index]);
    std::memset(grad.raw_mutable_data(), 0, grad.bytes());
  }
  pending_.insert(pending_.end(), commands.reduce.begin(), commands.reduce.end());
  if (options_.overlap) IssuePending();
}

void GradReducer::IssuePending() {
  for (int bucket : pending_) {
    issue_order_.push_back(bucket);
    ++records_[bucket].reductions;
    works_[bucket] = Reduce(bucket);
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
  const double begin = clock_();
  works_[bucket].Wait(stream);
  records_[bucket].waited += clock_() - begin;
}

void GradReducer::ResetRecords() {
  for (ReduceRecord& record : records_) record = ReduceRecord{record.bytes, 0, 0.0};
}

std::vector<int> GradReducer::TakeIssueOrder() { return std::exchange(issue_order_, {}); }

}  // namespace forerun
