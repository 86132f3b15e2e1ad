// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "core/ops/compute_work.h"
#include "core/ops/op_context.h"

namespace forerun::meta {

struct AllKernels;

// Kernels of the meta device. They touch nothing: shapes, checks and allocation are the business
// of the free functions in core/ops, which are the same on every device. So a model's own Forward
// and Backward run on meta tensors and tell what they would read, write and allocate.
//
// Immutable, alive as long as the program, any thread.
const KernelTable& Kernels();

// The same, and they add up what they would compute.
//   matmul [m, k] x [k, n]                    2 m k n flops
//   causal attention, b samples, h heads      2 b h s^2 d flops forward, 5 b h s^2 d backward
//                                             (two and five products of s x s x d, half of each)
//   all others                                bytes of what they read and write
// One thread. Outlives the contexts that name its table.
class CountingKernels {
 public:
  CountingKernels();
  ~CountingKernels();
  CountingKernels(const CountingKernels&) = delete;
  CountingKernels& operator=(const CountingKernels&) = delete;

  const KernelTable& table() const { return table_; }
  const ComputeWork& work() const { return work_; }  // since construction

 private:
  ComputeWork work_;
  const std::unique_ptr<const AllKernels> all_;
  const KernelTable table_;
};

}  // namespace forerun::meta
