// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "core/tensor/stateful.h"
#include "parallel/data_parallel/bucket_buffer.h"
#include "parallel/data_parallel/param_gate.h"

namespace forerun {

// The parameters of a rank as a checkpoint sees them: whole local boxes, read through the gate,
// without padding, under their logical names. Loading writes the buffer, before training begins.
class ParameterState final : public Stateful {
 public:
  // `saves`: whether this rank is the one to save a parameter (of all ranks that hold the same
  // box of it, one does). Buffer and gate outlive this.
  ParameterState(std::vector<const Parameter*> parameters, BucketBuffer& buffer, ParamGate& gate,
                 std::function<bool(const Parameter&)> saves);

  absl::Status Save(absl::FunctionRef<absl::Status(const StatePiece&)> save) override;
  absl::Status Load(absl::FunctionRef<absl::Status(const StatePiece&)> load) override;

 private:
  const std::vector<const Parameter*> parameters_;
  BucketBuffer& buffer_;
  ParamGate& gate_;
  const std::function<bool(const Parameter&)> saves_;
};

}  // namespace forerun
