// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/ops/compute_work.h"
#include "parallel/data_parallel/bucket_plan.h"
#include "parallel/data_parallel/forward_order.h"

// What a bucket plan will cost: how long compute will stand still for parameters at the beginning
// of a step, and for gradients at its end. Pure.
//
// Of several microbatches only the first forward pass and the last backward pass meet
// communication; these are meant here. Buckets k = 0.. are in forward order; N_k is the compute
// before the first use of bucket k's first parameter, T that of the whole forward pass.
//
// Forward; time 0 is the beginning of the optimizer's update, which ends at U and is followed by
// the forward pass.
//   (1) U_k = U_(k-1) + u n_k / shards              the update of bucket k ends; n_k elements
//   (2) F_k = max(F_(k-1), U_k) + t_gather(bytes_k) its gather ends: issued in order, eagerly, over
//                                                   a link that carries one at a time
//   (3) W_k = U + N_k                               it is wanted, if nothing was waited for
//   (4) stall = max(0, max_k(F_k - W_k)): a wait moves all later uses, and no gather
// Backward; time 0 is its beginning. It takes b T, b = 2: each product of the forward pass has two.
//   (5) ready_k = b (T - N_k)                       the gradients of bucket k are complete: what
//                                                   was used first contributes last
//   (6) R_k = max(R_(k+1), ready_k) + t_reduce(4 n_k)  its reduction, fp32, ends; in reverse order
//   (7) tail = max(0, R_0 - b T)
// with t(n) = alpha + beta n.
//
// Not in the model: communication of tensor and pipeline parallelism, which gives gathers more time
// than is said here; recomputation, which gives reductions more; the window of the gate, as a
// serial link needs only the next gather to be issued before the last one has ended.
namespace forerun {

// Seconds of a collective over a tensor of `bytes`, all ranks' parts together.
struct LinkCost {
  double alpha = 0.0;  // seconds
  double beta = 0.0;   // seconds a byte

  double Seconds(int64_t bytes) const { return alpha + beta * static_cast<double>(bytes); }
};

// The prices. All ranks that must plan alike hold equal ones.
struct Costs {
  LinkCost gather;
  LinkCost reduce;
  double flop = 0.0;    // seconds; likewise
  double byte = 0.0;    // read or written
  double update = 0.0;  // an element of the shard, by the optimizer: u

  // Where nothing was measured: a link of 50 us and 1 GB/s, 100 GFLOP/s, memory of 10 GB/s.
  static Costs Nominal();

  double Seconds(const ComputeWork& work) const {
    return flop * static_cast<double>(work.flops) + byte * static_cast<double>(work.bytes);
  }
  // One line; equal prices give equal text, and others do not.
  std::string ToString() const;
};

// AdamW with fp32 master and moments moves about so many bytes an element.
inline constexpr double kUpdateBytes = 32.0;
// The backward pass's work over the forward pass's.
inline constexpr double kBackwardOverForward = 2.0;

// Compute of one forward pass of a stage, in seconds.
struct ForwardTimeline {
  std::vector<double> before;  // N: by parameter in first-use order, ascending
  double total = 0.0;          // T
};

// Of a stage's chunks, run in this order. Parameters that no pass used come at its end.
ForwardTimeline TimelineOf(absl::Span<const ForwardOrderGraph* const> chunks, const Costs& costs);

// Seconds; those of the forward half after the update's beginning, those of the backward half after
// the backward pass's.
struct BucketPrediction {
  double gather = 0.0;    // t_gather
  double updated = 0.0;   // U_k
  double gathered = 0.0;  // F_k; begun `gather` before
  double wanted = 0.0;    // W_k
  double waited = 0.0;  // by its first reader, earlier waits taken into account; they sum to stall
  double reduce = 0.0;  // t_reduce
  double ready = 0.0;
  double reduced = 0.0;  // R_k; begun `reduce` before
};

struct Prediction {
  std::vector<BucketPrediction> buckets;  // of the plan
  double stall = 0.0;
  double tail = 0.0;

  double exposed() const { return stall + tail; }
};

// `timeline` is of the plan's parameters. As if gathers and reductions overlap with compute.
Prediction Predict(const BucketPlan& plan, const ForwardTimeline& timeline, const Costs& costs);

}  // namespace forerun
