// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/device/allocator.h"
#include "core/device/device.h"
#include "core/tensor/tensor.h"

namespace forerun {

class ActivationKernels;
class AttentionKernels;
class CastKernels;
class CopyKernels;
class CrossEntropyKernels;
class DropoutKernels;
class ElementwiseKernels;
class EmbeddingKernels;
class MatmulKernels;
class NormKernels;
class ReduceKernels;
class RopeKernels;

// One kernel object a family, chosen once, when a rank is built: core/ops/cpu, core/ops/meta,
// core/ops/reference (double precision, the oracle). Not owned; kernels are immutable and may be
// called by any number of threads.
struct KernelTable {
  const ActivationKernels* activation = nullptr;
  const AttentionKernels* attention = nullptr;
  const CastKernels* cast = nullptr;
  const CopyKernels* copy = nullptr;
  const CrossEntropyKernels* cross_entropy = nullptr;
  const DropoutKernels* dropout = nullptr;
  const ElementwiseKernels* elementwise = nullptr;
  const EmbeddingKernels* embedding = nullptr;
  const MatmulKernels* matmul = nullptr;
  const NormKernels* norm = nullptr;
  const ReduceKernels* reduce = nullptr;
  const RopeKernels* rope = nullptr;
};

// What every op takes first. Owned by the rank; belongs to the rank's compute thread.
//
// An op is a free function: it infers shapes (one pure function an op, shared by all backends),
// checks its arguments, allocates its results and calls the kernel of its family. A kernel gets
// results already allocated. Rules for all families:
//  1. Inputs may be strided but the last dim is contiguous, unless a header asks for less.
//     Results are contiguous.
//  2. fp32, bf16 and fp16 inputs: arithmetic in fp32, rounded once when stored.
//  3. An elementwise result depends on no position, length or thread count. Reductions have a
//     fixed order for a given shape and thread count.
//  4. Weight gradients are fp32, and added to (`accumulate`) or overwritten.
struct OpContext {
  Stream* stream = nullptr;
  Allocator* allocator = nullptr;
  const KernelTable* kernels = nullptr;

  Tensor Empty(const Shape& shape, DType dtype) const {
    return Tensor::Empty(*allocator, *stream, shape, dtype);
  }
};

}  // namespace forerun
