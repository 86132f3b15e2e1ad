// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/snapshot.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/device/device.h"
#include "core/tensor/host_tensor.h"

namespace forerun {
namespace {

absl::StatusOr<StatePiece> CopyOf(const StatePiece& piece) {
  if (piece.values.device().kind != DeviceKind::kCpu) {
    return absl::InvalidArgumentError(
        absl::StrCat(piece.name, " is to be saved from memory that is not the cpu's"));
  }
  StatePiece copy = piece;
  copy.values = HostTensor(piece.values.shape(), piece.values.dtype());
  // A piece without elements has no memory, which memcpy does not take.
  std::copy_n(static_cast<const char*>(piece.values.raw_data()), piece.values.bytes(),
              static_cast<char*>(copy.values.raw_mutable_data()));
  return copy;
}

}  // namespace

absl::StatusOr<Snapshot> Snapshot::Of(absl::Span<Stateful* const> states) {
  Snapshot snapshot;
  for (Stateful* state : states) {
    FR_RETURN_IF_ERROR(state->Save([&](const StatePiece& piece) -> absl::Status {
      FR_ASSIGN_OR_RETURN(StatePiece copy, CopyOf(piece));
      snapshot.pieces_.push_back(std::move(copy));
      return absl::OkStatus();
    }));
  }
  return snapshot;
}

absl::Status Snapshot::Save(absl::FunctionRef<absl::Status(const StatePiece&)> save) {
  for (const StatePiece& piece : pieces_) FR_RETURN_IF_ERROR(save(piece));
  return absl::OkStatus();
}

absl::Status Snapshot::Load(absl::FunctionRef<absl::Status(const StatePiece&)> load) {
  for (const StatePiece& piece : pieces_) FR_RETURN_IF_ERROR(load(piece));
  return absl::OkStatus();
}

}  // namespace forerun
