// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/parameter_state.h"

#include <utility>

#include "core/base/status_macros.h"

namespace forerun {
namespace {

StatePiece PieceOf(const Parameter& parameter, const Tensor& value) {
  return StatePiece{parameter.name(), parameter.global_shape(), parameter.box(), 0,
                    value.View({parameter.numel()})};
}

}  // namespace

ParameterState::ParameterState(std::vector<const Parameter*> parameters, BucketBuffer& buffer,
                               ParamGate& gate, std::function<bool(const Parameter&)> saves)
    : parameters_(std::move(parameters)), buffer_(buffer), gate_(gate), saves_(std::move(saves)) {}

absl::Status ParameterState::Save(absl::FunctionRef<absl::Status(const StatePiece&)> save) {
  InlineStream host(Device{});
  for (const Parameter* parameter : parameters_) {
    // Every rank reads every parameter, so that all advance the chain alike.
    const ParamLease lease = gate_.Read(*parameter, host, "checkpoint");
    if (saves_(*parameter)) FR_RETURN_IF_ERROR(save(PieceOf(*parameter, lease.tensor())));
  }
  return absl::OkStatus();
}

absl::Status ParameterState::Load(absl::FunctionRef<absl::Status(const StatePiece&)> load) {
  for (const Parameter* parameter : parameters_) {
    FR_RETURN_IF_ERROR(load(PieceOf(*parameter, buffer_.Initial(*parameter))));
  }
  return absl::OkStatus();
}

}  // namespace forerun
