// SPDX-License-Identifier: Apache-2.0
#include "core/ops/reference/kernels.h"

#include "core/ops/reference/activation.h"
#include "core/ops/reference/attention.h"
#include "core/ops/reference/cast.h"
#include "core/ops/reference/copy.h"
#include "core/ops/reference/cross_entropy.h"
#include "core/ops/reference/dropout.h"
#include "core/ops/reference/elementwise.h"
#include "core/ops/reference/embedding.h"
#include "core/ops/reference/matmul.h"
#include "core/ops/reference/norm.h"
#include "core/ops/reference/reduce.h"
#include "core/ops/reference/rope.h"

namespace forerun::reference {

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

}  // namespace forerun::reference
