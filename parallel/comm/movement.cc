// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/movement.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "parallel/comm/tree_reduce.h"

namespace forerun::comm {
namespace {

void CopyBytes(const Tensor& from, const Tensor& to) {
  if (from.numel() > 0 && from.raw_data() != to.raw_data()) {
    std::memcpy(to.raw_mutable_data(), from.raw_data(), static_cast<size_t>(from.bytes()));
  }
}

Tensor Flat(const Tensor& tensor) { return tensor.View({tensor.numel()}); }

// The elements of an all-reduce that one rank sums.
Tensor ReducedPart(const Tensor& tensor, int rank, int size) {
  constexpr int64_t kAlignment = 64;
  const int64_t numel = tensor.numel();
  const int64_t step = ((numel + size - 1) / size + kAlignment - 1) / kAlignment * kAlignment;
  const int64_t begin = std::min(numel, rank * step);
  return Flat(tensor).Slice(0, begin, std::min(numel, begin + step));
}

void AllReduceTask(const std::vector<Arrival>& arrivals, int rank, int phase) {
  const int size = static_cast<int>(arrivals.size());
  if (phase == 0) {
    const Tensor part = ReducedPart(arrivals[rank].output, rank, size);
    std::vector<Tensor> parts;
    for (const Arrival& arrival : arrivals) {
      parts.push_back(ReducedPart(arrival.output, rank, size));
    }
    return TreeReduce(parts, 0, arrivals[rank].reduce, part);
  }
  for (int other = 0; other < size; ++other) {
    CopyBytes(ReducedPart(arrivals[other].output, other, size),
              ReducedPart(arrivals[rank].output, other, size));
  }
}

void AllGatherTask(const std::vector<Arrival>& arrivals, int rank) {
  const Tensor output = Flat(arrivals[rank].output);
  const int64_t part = arrivals[rank].input.numel();
  for (size_t other = 0; other < arrivals.size(); ++other) {
    const auto begin = static_cast<int64_t>(other) * part;
    CopyBytes(Flat(arrivals[other].input), output.Slice(0, begin, begin + part));
  }
}

void ReduceScatterTask(const std::vector<Arrival>& arrivals, int rank) {
  std::vector<Tensor> inputs;
  for (const Arrival& arrival : arrivals) inputs.push_back(Flat(arrival.input));
  const Tensor output = Flat(arrivals[rank].output);
  TreeReduce(inputs, rank * output.numel(), arrivals[rank].reduce, output);
}

int64_t Bytes(const Tensor& tensor) { return tensor.defined() ? tensor.bytes() : 0; }

}  // namespace

bool Arrival::Matches(const Arrival& other) const {
  if (kind != other.kind) return false;
  if (kind == OpKind::kBarrier) return true;
  const bool reduces = kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter;
  return input.numel() == other.input.numel() && input.dtype() == other.input.dtype() &&
         root == other.root && (!reduces || reduce == other.reduce);
}

std::string Arrival::Describe() const {
  if (kind == OpKind::kBarrier) return std::string(NameOf(kind));
  std::string text = absl::StrCat(NameOf(kind), " of ", input.numel(), " ", NameOf(input.dtype()));
  if (kind == OpKind::kBroadcast) absl::StrAppend(&text, " from rank ", root);
  if (kind == OpKind::kAllReduce || kind == OpKind::kReduceScatter) {
    absl::StrAppend(&text, reduce == ReduceOp::kSum ? " (sum)" : " (max)");
  }
  return text;
}

int Phases(OpKind kind) { return kind == OpKind::kAllReduce ? 2 : 1; }

void RunTask(const std::vector<Arrival>& arrivals, int rank, int phase) {
  switch (arrivals[rank].kind) {
    case OpKind::kAllReduce:
      return AllReduceTask(arrivals, rank, phase);
    case OpKind::kAllGather:
      return AllGatherTask(arrivals, rank);
    case OpKind::kReduceScatter:
      return ReduceScatterTask(arrivals, rank);
    case OpKind::kBroadcast:
      return CopyBytes(arrivals[arrivals[rank].root].input, arrivals[rank].output);
    case OpKind::kRecv:
      return CopyBytes(arrivals[0].input, arrivals[rank].output);
    case OpKind::kSend:
    case OpKind::kBarrier:
      return;
  }
}

int64_t LargestBytes(const std::vector<Arrival>& arrivals) {
  int64_t bytes = 0;
  for (const Arrival& arrival : arrivals) {
    bytes = std::max({bytes, Bytes(arrival.input), Bytes(arrival.output)});
  }
  return bytes;
}

}  // namespace forerun::comm
