// SPDX-License-Identifier: Apache-2.0
#include "core/ops/cpu/onednn_primitives.h"

#include <utility>

#include "absl/hash/hash.h"
#include "core/base/check.h"

namespace forerun::cpu {
namespace {

using dnnl::memory;

// A shelf this full is emptied: a program whose shapes never repeat must not grow without end.
constexpr size_t kShelfLimit = 512;

// op(x) is [rows, columns]; `row` elements lie between the stored rows of x.
memory::desc Matrix(int64_t rows, int64_t columns, memory::data_type type, int64_t row,
                    bool transposed) {
  const memory::dims strides = transposed ? memory::dims{1, row} : memory::dims{row, 1};
  return memory::desc({rows, columns}, type, strides);
}

}  // namespace

std::shared_ptr<const MatmulPrimitive> MatmulPrimitives::Get(const MatmulKey& key) {
  Shelf& shelf = shelves_[absl::Hash<MatmulKey>()(key) % shelves_.size()];
  {
    MutexLock lock(&shelf.mutex);
    const auto found = shelf.primitives.find(key);
    if (found != shelf.primitives.end()) return found->second;
  }
  // Two threads may make the same one; the first to return is kept.
  std::shared_ptr<const MatmulPrimitive> made = Make(key);
  MutexLock lock(&shelf.mutex);
  if (shelf.primitives.size() >= kShelfLimit) shelf.primitives.clear();
  return shelf.primitives.try_emplace(key, std::move(made)).first->second;
}

std::shared_ptr<const MatmulPrimitive> MatmulPrimitives::Make(const MatmulKey& key) const {
  auto made = std::make_shared<MatmulPrimitive>();
  made->a = Matrix(key.m, key.k, key.in, key.a_row, key.transpose_a);
  made->b = Matrix(key.k, key.n, key.in, key.b_row, key.transpose_b);
  made->c = Matrix(key.m, key.n, key.out, key.c_row, false);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (key.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  if (key.bias) made->bias = Matrix(1, key.n, key.in, key.n, false);
  try {
    const dnnl::matmul::desc product =
        key.bias ? dnnl::matmul::desc(made->a, made->b, made->bias, made->c)
                 : dnnl::matmul::desc(made->a, made->b, made->c);
    const dnnl::matmul::primitive_desc description(product, attributes, engine_);
    made->scratchpad = description.scratchpad_desc();
    made->primitive = dnnl::matmul(description);
  } catch (const dnnl::error& error) {
    FR_CHECK(false) << "oneDNN makes no matmul of [" << key.m << ", " << key.k << "] and [" << key.k
                    << ", " << key.n << "]: " << error.what();
  }
  return made;
}

}  // namespace forerun::cpu
