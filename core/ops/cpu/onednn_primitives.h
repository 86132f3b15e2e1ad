// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "core/base/mutex.h"
#include "dnnl.hpp"

namespace forerun::cpu {

// Everything that a matmul primitive of oneDNN is made for: c (+)= op(a) op(b) + bias.
struct MatmulKey {
  int64_t m, n, k;
  int64_t a_row, b_row, c_row;  // elements from a row to the next, as stored
  dnnl::memory::data_type in, out;
  bool transpose_a, transpose_b;
  bool bias;  // dtype `in`
  bool accumulate;
  int threads;  // oneDNN splits the work when the primitive is made

  bool operator==(const MatmulKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const MatmulKey& key) {
    return H::combine(std::move(h), key.m, key.n, key.k, key.a_row, key.b_row, key.c_row,
                      static_cast<int>(key.in), static_cast<int>(key.out), key.transpose_a,
                      key.transpose_b, key.bias, key.accumulate, key.threads);
  }
};

// A primitive that brings no memory of its own, so that any number of threads may run it at once,
// each with a scratchpad.
struct MatmulPrimitive {
  dnnl::matmul primitive;
  dnnl::memory::desc a, b, bias, c, scratchpad;
};

// Primitives by key. Making one takes milliseconds (code is generated); finding one, well under a
// microsecond. Any thread may call. Locks are held for the look-up alone, and there are several,
// so ranks that run as threads do not wait for one another.
class MatmulPrimitives {
 public:
  explicit MatmulPrimitives(const dnnl::engine& engine) : engine_(engine) {}

  std::shared_ptr<const MatmulPrimitive> Get(const MatmulKey& key);

 private:
  struct Shelf {
    Mutex mutex;
    absl::flat_hash_map<MatmulKey, std::shared_ptr<const MatmulPrimitive>> primitives
        ABSL_GUARDED_BY(mutex);
  };

  std::shared_ptr<const MatmulPrimitive> Make(const MatmulKey& key) const;

  const dnnl::engine engine_;
  std::array<Shelf, 16> shelves_;
};

}  // namespace forerun::cpu
