// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/tensor/shape.h"
#include "core/tensor/tensor.h"

namespace forerun {

// A piece of a logical tensor that this rank holds: the elements [begin, begin + numel) of `box`,
// counted row-major inside the box, where `box` lies in a tensor of shape `global`. Names and
// global shapes do not depend on the layout (tp, pp, dp, buckets), so that what one layout saves
// any other can load.
struct StatePiece {
  std::string name;  // e.g. "layers.0.mlp.fc1.weight" or "optimizer.exp_avg.layers.0.mlp.fc1.weight"
  Shape global;
  Box box;
  int64_t begin = 0;
  Tensor values;  // one dim, contiguous, numel elements
};

// What a checkpoint holds comes and goes through this interface, implemented by parameters,
// optimizer, schedule and sampler. The checkpoint knows none of them, and they know no files.
class Stateful {
 public:
  virtual ~Stateful() = default;

  // Calls save(piece) for each piece that this rank is the one to save; values are read-only and
  // valid during the call. Over all ranks each element is saved once. Writing a checkpoint calls it
  // twice, to list and to write: both times it gives the same pieces in the same order.
  virtual absl::Status Save(absl::FunctionRef<absl::Status(const StatePiece&)> save) = 0;

  // Calls load(piece) for each piece that this rank needs; load fills piece.values, cast to their
  // dtype, or fails naming what is missing.
  virtual absl::Status Load(absl::FunctionRef<absl::Status(const StatePiece&)> load) = 0;
};

}  // namespace forerun
