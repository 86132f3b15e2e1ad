// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "core/ops/op_context.h"
#include "core/tensor/dtype.h"
#include "parallel/data_parallel/cost_model.h"
#include "parallel/data_parallel/forward_order.h"
#include "parallel/data_parallel/groups.h"
#include "parallel/data_parallel/transfer_log.h"

namespace forerun {

// A product like those of a model: [rows, in] x [out, in]^T.
struct MatmulProbe {
  int64_t rows = 64;
  int64_t in = 64;
  int64_t out = 64;
  DType dtype = DType::kF32;
};

// Of the size of the largest matrix among the chunks' parameters, with as many rows as the recorded
// flops say; no side is above 512.
MatmulProbe ProbeOf(absl::Span<const ForwardOrderGraph* const> chunks);

// Measures the prices of a plan. A collective call of all ranks of all three groups, for set-up:
// tenths of a second. Every figure is the median of a few repetitions, after one that does not
// count, and then the largest of all data-parallel and tensor-parallel ranks': those hold the same
// costs afterwards, to the bit, however their clocks differed.
//   links    a collective of 4 KiB and one of 1 MiB, each begun by all ranks at once; alpha is at
//            least a microsecond. Where the optimizer is not sharded: AllReduce, and free gathers.
//   flop     one matmul like the probe      byte    one copy of 1 MiB      update   kUpdateBytes
// Throws comm::GroupError.
Costs MeasureCosts(const OpContext& context, const DataParallelGroups& groups,
                   const MatmulProbe& probe, const SecondsClock& clock);

}  // namespace forerun
