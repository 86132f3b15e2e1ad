// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/autograd/grad_sink.h"
#include "parallel/comm/process_group.h"
#include "parallel/data_parallel/bucket_buffer.h"
#include "parallel/data_parallel/grad_reduce.h"
#include "parallel/data_parallel/transfer_log.h"

namespace forerun {

// The driver of GradReduce: takes weight gradients into the bucket buffer and reduces each bucket
// over the data-parallel group, as soon as its last contribution has arrived (overlap) or when the
// optimizer asks. Sums only: whoever seeds the backward pass divides.
//
// With shards, a bucket is reduce-scattered and only the own shard is summed; without (a plan of
// one shard) it is all-reduced. Both give the same bits, by the group's fixed order.
// Used by the compute thread alone.
class GradReducer final : public GradSink {
 public:
  struct Options {
    bool overlap = true;
  };

  // chunk_of_parameter: by index in the plan. Buffer and group outlive the reducer.
  GradReducer(BucketBuffer& buffer, std::vector<int> chunk_of_parameter, int chunks,
              comm::ProcessGroup& group, const Options& options, SecondsClock clock);
  ~GradReducer() override;  // waits for reductions in flight: they hold the buffer's memory

  // A step of so many microbatches begins.
  void BeginStep(int microbatches);
  // The forward pass of a microbatch ended; `contributions` is its tape's.
  void Announce(int chunk, absl::Span<const Parameter* const> contributions);

  GradSlot Slot(const Parameter& parameter) override;
  void Contributed(const Parameter& parameter, std::shared_ptr<const Event> event) override;

  // Orders `stream` after the bucket's reduction; throws GroupError.
  void Wait(int bucket, Stream& stream);

  // The order of reductions from the next step on: a permutation of the buckets, the same on every
  // rank. All were issued.
  void SetOrder(std::vector<int> order) { reduce_.SetOrder(std::move(order)); }

  TransferLog& log() { return *log_; }  // of the reductions

 private:
  void Execute(const GradReduce::Commands& commands);
  void IssuePending();
  comm::Work Reduce(int bucket);

  BucketBuffer& buffer_;
  comm::ProcessGroup& group_;
  const Options options_;
  const std::shared_ptr<TransferLog> log_;  // shared with completions in flight
  GradReduce reduce_;
  std::vector<int> pending_;  // ready, not issued: without overlap
  std::vector<comm::Work> works_;
  std::vector<int64_t> ids_;  // in the log, by bucket
  int64_t step_ = 0;          // counts BeginStep
};

}  // namespace forerun
