// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/tensor/stateful.h"

namespace forerun {

// A copy, in host memory, of what states would save. It depends on them no more.
class Snapshot final : public Stateful {
 public:
  // Values lie on the cpu. Fails where a state does.
  static absl::StatusOr<Snapshot> Of(absl::Span<Stateful* const> states);

  absl::Status Save(absl::FunctionRef<absl::Status(const StatePiece&)> save) override;
  absl::Status Load(absl::FunctionRef<absl::Status(const StatePiece&)> load) override;

 private:
  std::vector<StatePiece> pieces_;
};

}  // namespace forerun
