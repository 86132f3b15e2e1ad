// SPDX-License-Identifier: Apache-2.0
#include "parallel/data_parallel/parameter_state.h"

#include <utility>

#include "absl/types/optional.h"
#include "core/autograd/parameter_piece.h"
#include "core/base/status_macros.h"

namespace forerun {
namespace {

absl::optional<StatePiece> WholePiece(const Parameter& parameter, const Tensor& value) {
  return PieceOf(parameter, parameter.name(), 0, value.View({parameter.numel()}));
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
    if (!saves_(*parameter)) continue;
    const absl::optional<StatePiece> piece = WholePiece(*parameter, lease.tensor());
    if (piece.has_value()) FR_RETURN_IF_ERROR(save(*piece));
  }
  return absl::OkStatus();
}

absl::Status ParameterState::Load(absl::FunctionRef<absl::Status(const StatePiece&)> load) {
  for (const Parameter* parameter : parameters_) {
    const absl::optional<StatePiece> piece = WholePiece(*parameter, buffer_.Initial(*parameter));
    if (piece.has_value()) FR_RETURN_IF_ERROR(load(*piece));
  }
  return absl::OkStatus();
}

}  // namespace forerun
