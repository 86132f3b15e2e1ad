// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace forerun {

enum class ParameterKind : uint8_t {
  kTrainable,  // every forward pass must use it
  kOptional,   // trainable, and a forward pass may leave it out: it then contributes zero
  kFrozen,     // never updated: in no bucket, no optimizer state
};

// Which stage-shared copy of a parameter this is (a tied embedding lives on two stages).
enum class Sharing : uint8_t {
  kNone,
  kPrimary,  // this copy is counted in norms and parameter counts, and saved
  kCopy,     // kept equal to the primary by summing gradients over the sharing group
};

// What a layer says about a parameter it wants.
struct ParameterSpec {
  std::string name;    // logical: the same for every layout, unique in the model
  Shape global_shape;  // of the whole parameter
  Box box;             // the part that this tensor-parallel rank holds
  // The last rows of dim 0 that stand for nothing and only make the shape divisible, as those of a
  // padded vocabulary. They depend on the layout, start as zero, stay so, and are never saved.
  int64_t padding_rows = 0;
  DType dtype = DType::kF32;
  ParameterKind kind = ParameterKind::kTrainable;
  bool weight_decay = true;  // false for norms and biases
  Sharing sharing = Sharing::kNone;
};

// Identity and geometry of one parameter of one model chunk. There is no way from here to a value:
// values are read through a ParamReader and gradients go to a GradSink. Immutable once its registry
// is complete; its address is stable for the life of that registry.
class Parameter {
 public:
  Parameter(int id, ParameterSpec spec) : id_(id), spec_(std::move(spec)) {}
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  int id() const { return id_; }  // dense from 0 in registration order
  const std::string& name() const { return spec_.name; }
  const Shape& global_shape() const { return spec_.global_shape; }
  const Box& box() const { return spec_.box; }
  const Shape& shape() const { return spec_.box.extent; }  // local
  int64_t numel() const { return shape().numel(); }        // local
  // Without padding rows: the same for every layout. Padding is last along the outermost dim, so an
  // element of the logical box has the same row-major index there as in the box.
  Shape logical_shape() const;
  Box logical_box() const;
  DType dtype() const { return spec_.dtype; }
  ParameterKind kind() const { return spec_.kind; }
  bool trainable() const { return kind() != ParameterKind::kFrozen; }
  bool weight_decay() const { return spec_.weight_decay; }
  Sharing sharing() const { return spec_.sharing; }
  // Every tensor-parallel rank holds all of it.
  bool replicated() const { return spec_.box.Covers(spec_.global_shape); }

 private:
  friend class ParameterRegistry;  // gives ids anew when it is permuted

  int id_;
  const ParameterSpec spec_;
};

}  // namespace forerun
