// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint_loading.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/tensor/dtype.h"

namespace forerun {
namespace {

constexpr char kMaster[] = "optimizer.master.";

// The name of the tensor that has a piece's values in full precision.
std::string SourceOf(const Checkpoint& checkpoint, const StatePiece& piece) {
  absl::string_view weight = piece.name;
  if (absl::ConsumePrefix(&weight, kMaster)) {
    return checkpoint.Contains(piece.name) ? piece.name : std::string(weight);
  }
  const std::string master = absl::StrCat(kMaster, weight);
  const bool is_wide = piece.values.dtype() == DType::kF32;
  return is_wide && checkpoint.Contains(master) ? master : piece.name;
}

}  // namespace

absl::Status LoadInAnyPrecision(Checkpoint& checkpoint, Stateful& state) {
  return state.Load([&](const StatePiece& piece) {
    StatePiece from = piece;
    from.name = SourceOf(checkpoint, piece);
    return checkpoint.LoadPiece(from);
  });
}

}  // namespace forerun
