// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "bench/sync_case.h"
#include "core/ops/op_context.h"
#include "parallel/comm/process_group.h"
#include "parallel/data_parallel/transfer_log.h"

namespace forerun {

// The policies that are compared.
enum class GatherPolicy {
  kForwardEager,          // the product's: a ParamGate with overlap
  kForwardOneAhead,       // OneAheadChain along the order of use
  kRegistrationOneAhead,  // OneAheadChain along the order of registration: Megatron-LM
  kBlocking,              // a ParamGate without overlap: all gathers before the forward pass
};
std::vector<GatherPolicy> GatherPolicies();
std::string NameOf(GatherPolicy policy);

// One rank's gathers under a policy, as its optimizer and layers drive them. Belongs to the rank's
// compute thread.
class GatherDriver {
 public:
  virtual ~GatherDriver() = default;
  // The update of a layer's bucket; `write` is what it takes.
  virtual void Update(int layer, absl::FunctionRef<void()> write) = 0;
  // All buckets were updated.
  virtual void EndUpdate() = 0;
  // Returns when the layer's parameter is current.
  virtual void Read(int layer) = 0;
  // Seconds that somebody was blocked for a layer's parameter since the last call; by layer.
  virtual std::vector<double> TakeWaited() = 0;
};

// Context, group and clock outlive the driver.
std::unique_ptr<GatherDriver> MakeGatherDriver(GatherPolicy policy, const SyncCase& sync_case,
                                               const OpContext& op, comm::ProcessGroup& group,
                                               const SecondsClock& clock);

}  // namespace forerun
