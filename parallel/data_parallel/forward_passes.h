// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "core/autograd/param_reader.h"
#include "core/ops/op_context.h"
#include "parallel/comm/process_group.h"
#include "parallel/data_parallel/forward_order.h"
#include "parallel/data_parallel/grad_reducer.h"
#include "parallel/data_parallel/order_adoption.h"
#include "parallel/data_parallel/order_watch.h"
#include "parallel/data_parallel/param_gate.h"

namespace forerun {

// A rank's training forward passes: what they read goes through the gate and is compared with the
// graphs, and what follows from a difference is done at the end of the step (order_watch.h says
// what). Belongs to the compute thread.
class ForwardPasses {
 public:
  // By chunk; everything outlives it. `gather` is the gate's group.
  ForwardPasses(absl::Span<const ForwardOrderGraph* const> graphs, ForwardOrderMode mode,
                ParamGate& gate, GradReducer& reducer, comm::ProcessGroup& gather);

  // A pass of a chunk reads through the result until End. Passes do not nest. Recomputation may
  // read through it after End.
  ParamReader& Begin(int chunk);
  void End(int chunk);

  // Between a step's last backward pass and its update. Fails where the mode or a missing read says
  // so. With kAdopt a collective call over the gather group, which may change the order of gathers
  // and reductions from here on. Throws comm::GroupError.
  absl::Status EndOfStep(const OpContext& context);

  // Of all chunks.
  OrderWatch::Differences differences() const;
  int64_t adoptions() const { return adoptions_; }  // times that the issue order changed

 private:
  // One chunk's.
  struct Watched {
    Watched(const ForwardOrderGraph& graph, ParamReader& gate)
        : watch(graph), reader(watch, gate) {}
    OrderWatch watch;
    WatchedReader reader;
  };

  void Adopt(const OpContext& context);

  const ForwardOrderMode mode_;
  ParamGate& gate_;
  GradReducer& reducer_;
  std::vector<std::unique_ptr<Watched>> chunks_;
  OrderAdoption adoption_;
  int64_t adoptions_ = 0;
};

}  // namespace forerun
