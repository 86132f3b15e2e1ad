// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/autograd/parameter.h"
#include "core/nn/registry.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "parallel/data_parallel/bucket_buffer.h"
#include "parallel/data_parallel/bucket_plan.h"

namespace forerun {

// The parameters of a small model in which every case of a bucket plan occurs: odd sizes, one
// parameter that is cut, several in a bucket, an optional and a frozen one; with `mixed`, two
// dtypes. Registered in another order than used. Constant, so that ranks may share it.
class TestParameters {
 public:
  explicit TestParameters(bool mixed = false);

  absl::Span<const Parameter* const> order() const { return order_; }  // of first use
  absl::Span<const Parameter* const> frozen() const { return frozen_; }
  const Parameter& named(const char* name) const;

  // Six buckets or so; "cut" lies in several.
  BucketPlan Plan(int shards) const;
  // Writes the initial values, the same for any plan.
  void Initialise(BucketBuffer& buffer) const;

 private:
  const Parameter* Declare(const char* name, const Shape& shape, DType dtype, ParameterKind kind,
                           bool weight_decay);

  ParameterRegistry registry_;
  std::vector<const Parameter*> order_;
  std::vector<const Parameter*> frozen_;
};

}  // namespace forerun
