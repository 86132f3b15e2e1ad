// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/tensor/tensor.h"
#include "parallel/comm/work.h"

namespace forerun::comm {

enum class ReduceOp : uint8_t { kSum, kMax };

enum class OpKind : uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kSend,
  kRecv,
  kBarrier,
};
absl::string_view NameOf(OpKind kind);

// Whether sums have the fixed order below, or any the backend likes.
enum class Arithmetic : uint8_t { kOrdered, kFast };

// This rank's handle to a group of ranks that talk to each other: a communicator.
//
// Calls
//  1. All collectives are asynchronous: they return at once, and the Work tells when it has ended.
//  2. Every rank of the group issues the same collectives in the same order, with the same kinds,
//     dtypes and sizes; a difference that a backend can see fails the group and names both.
//     Messages (Send, Recv) pair up first in, first out per direction and peer, apart from
//     collectives; a rank may send to itself.
//  3. Any thread of the rank may call, but calls to one group are one at a time, in the order that
//     (2) speaks of: who issues from several threads holds a lock of his own.
//  4. Order is fixed within a group only. No group's progress depends on another's, and a rank
//     makes progress whether or not it waits for anything.
//
// Buffers
//  5. Contiguous, on the group's device. From the call until the Work has ended the backend may
//     read inputs, which nobody may write, and write outputs, which nobody may touch. The Work
//     keeps the memory alive. No backend touches a rank's buffer before that rank has issued the
//     operation, nor after it has ended on that rank.
//  6. Gather and scatter: rank r's part is the r-th of size() equal parts of the whole. AllGather's
//     input may be that part of its output, and ReduceScatter's output that part of its input
//     (in place); any other overlap is an error.
//
// Arithmetic
//  7. An ordered backend sums over one fixed binary tree of ranks, neighbours first:
//     ((0+1)+(2+3))+..., for n not a power of two split at the largest power of two below n. Each
//     addition is done in the tensor's dtype, rounded once (16 bit types: fp32 additions within
//     the tree, rounded once at the end; integers wrap around). So the bits of an element depend
//     on the ranks' values alone. A maximum is NaN where any rank's value is.
//
// Failure
//  8. A wait that passes the group's deadline, a mismatch, or Abort fails the group for good:
//     every operation in flight and every later one ends with that first error, on every rank that
//     can still be reached; what its outputs hold then is undefined. Waits throw GroupError;
//     issuing never throws. A call that is wrong by itself (arguments.h) is a failed check.
//
// Size one: every operation is the identity (a copy where in and out differ), done at once; a
// message once both its halves are issued.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  virtual const std::string& name() const = 0;  // "dp", "tp", ... with its first world rank
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual Arithmetic arithmetic() const = 0;

  // Element types: fp32, fp64, bf16, fp16, int32, int64 for sums and maxima; any for the rest.
  virtual Work AllReduce(const Tensor& tensor, ReduceOp op) = 0;  // in place
  virtual Work AllGather(const Tensor& input, const Tensor& output) = 0;
  virtual Work ReduceScatter(const Tensor& input, const Tensor& output, ReduceOp op) = 0;
  virtual Work Broadcast(const Tensor& tensor, int root) = 0;  // in place
  virtual Work Send(const Tensor& tensor, int peer) = 0;
  virtual Work Recv(const Tensor& tensor, int peer) = 0;
  virtual Work Barrier() = 0;

  virtual void Abort(const absl::Status& status) = 0;
};

}  // namespace forerun::comm
