// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/types/span.h"
#include "core/autograd/parameter.h"
#include "parallel/data_parallel/bucket_plan.h"
#include "parallel/data_parallel/cost_model.h"

namespace forerun {

// Chooses where first-use order is cut into buckets, so that the stall plus the tail that the cost
// model predicts is least.
//
// A dynamic program over contiguous cuts. A segment between two cuts gives one bucket a dtype, in
// order of first use; a parameter that lies alone is a segment. Of the ways to cut what lies before
// a place, those are kept which no other beats in all of
//   F, the end of the last gather    P, the sum of reduction times
//   max(F_k - N_k), the stall        max(P_k - b N_k), the tail: R_0 = max_k(ready_k + P_k)
// as each later bucket adds to F and P, and takes maxima, alike for all of them.
//
// Of the ways whose stall plus tail is within 0.1 % of the least that one is taken whose reductions
// take least time: it has fewest messages. Exact, among the cuts in which no bucket of several
// parameters is above `max_bucket_bytes`, as long as no place has more than 64 ways that no other
// beats; of more, those are kept whose stall plus tail can become least. Models of more than
// kMostPlaces parameters are cut at some places only: close together at the beginning, then spread
// over the bytes. So a plan for any model takes a fraction of a second.
inline constexpr int kMostPlaces = 128;

// `options` with its cuts filled in. `max_bucket_bytes` may come back smaller: 16 and 4 MiB are
// tried as well, for pieces let the gather of a large parameter start under its own update.
// `options.bucket_numel` is not set; `timeline` is of these parameters.
BucketPlanOptions WithBestCuts(absl::Span<const Parameter* const> first_use_order,
                               const ForwardTimeline& timeline, const Costs& costs,
                               BucketPlanOptions options);

}  // namespace forerun
