// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/kernels.h"

#include "core/ops/cpu/activation.h"
#include "core/ops/cpu/attention.h"
#include "core/ops/cpu/cast.h"
#include "core/ops/cpu/copy.h"
#include "core/ops/cpu/cross_entropy.h"
#include "core/ops/cpu/dropout.h"
#include "core/ops/cpu/elementwise.h"
#include "core/ops/cpu/embedding.h"
#include "core/ops/cpu/matmul.h"
#include "core/ops/cpu/norm.h"
#include "core/ops/cpu/reduce.h"
#include "core/ops/cpu/rope.h"

namespace forerun::cpu {

const KernelTable& Kernels() {
  static const KernelTable table{
      .activation = &Activation(),
      .attention = &Attention(),
      .cast = &Cast(),
      .copy = &Copy(),
      .cross_entropy = &CrossEntropy(),
      .dropout = &Dropout(),
      .elementwise = &Elementwise(),
      .embedding = &Embedding(),
      .matmul = &Matmul(),
      .norm = &Norm(),
      .reduce = &Reduce(),
      .rope = &Rope(),
  };
  return table;
}

}  // namespace forerun::cpu
