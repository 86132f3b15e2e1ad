// SPDX-License-Identifier: Apache-2.0
#include "parallel/comm/arguments.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace forerun::comm {
namespace {

template <typename... Parts>
absl::Status Wrong(const ProcessGroup& group, OpKind kind, const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat("group ", group.name(), ": ", NameOf(kind), parts...));
}

absl::Status CheckTensor(const ProcessGroup& group, OpKind kind, absl::string_view role,
                         const Tensor& tensor, bool written) {
  if (!tensor.defined()) return Wrong(group, kind, "'s ", role, " is undefined");
  if (!tensor.is_contiguous()) {
    return Wrong(group, kind, "'s ", role, " of ", tensor.numel(), " ", NameOf(tensor.dtype()),
                 " is not contiguous");
  }
  if (written && tensor.read_only()) return Wrong(group, kind, "'s ", role, " is read-only");
  return absl::OkStatus();
}

absl::Status CheckReducible(const ProcessGroup& group, OpKind kind, const Tensor& tensor) {
  const DType dtype = tensor.dtype();
  if (IsFloating(dtype) || dtype == DType::kI32 || dtype == DType::kI64) return absl::OkStatus();
  return Wrong(group, kind, " cannot add ", NameOf(dtype));
}

// `part` may be the rank's part of `whole`, or lie apart from it.
absl::Status CheckPart(const ProcessGroup& group, OpKind kind, const Tensor& part,
                       const Tensor& whole) {
  if (part.dtype() != whole.dtype()) {
    return Wrong(group, kind, "'s tensors are ", NameOf(part.dtype()), " and ",
                 NameOf(whole.dtype()));
  }
  if (part.device() != whole.device()) return Wrong(group, kind, "'s tensors lie on two devices");
  if (part.numel() * group.size() != whole.numel()) {
    return Wrong(group, kind, "'s whole of ", whole.numel(), " elements is not ", group.size(),
                 " parts of ", part.numel());
  }
  if (part.is_meta() || part.numel() == 0) return absl::OkStatus();
  const auto part_begin = reinterpret_cast<uintptr_t>(part.raw_data());
  const auto whole_begin = reinterpret_cast<uintptr_t>(whole.raw_data());
  const auto part_bytes = static_cast<uintptr_t>(part.bytes());
  const auto whole_bytes = static_cast<uintptr_t>(whole.bytes());
  const bool apart =
      part_begin + part_bytes <= whole_begin || whole_begin + whole_bytes <= part_begin;
  const bool in_place =
      part_begin == whole_begin + static_cast<uintptr_t>(group.rank()) * part_bytes;
  if (apart || in_place) return absl::OkStatus();
  return Wrong(group, kind, "'s tensors overlap, and the smaller is not part ", group.rank(),
               " of the larger");
}

absl::Status CheckRank(const ProcessGroup& group, OpKind kind, absl::string_view role, int rank) {
  if (rank >= 0 && rank < group.size()) return absl::OkStatus();
  return Wrong(group, kind, "'s ", role, " ", rank, " is not one of ", group.size(), " ranks");
}

}  // namespace

absl::Status CheckAllReduce(const ProcessGroup& group, const Tensor& tensor) {
  FR_RETURN_IF_ERROR(CheckTensor(group, OpKind::kAllReduce, "tensor", tensor, true));
  return CheckReducible(group, OpKind::kAllReduce, tensor);
}

absl::Status CheckAllGather(const ProcessGroup& group, const Tensor& input, const Tensor& output) {
  FR_RETURN_IF_ERROR(CheckTensor(group, OpKind::kAllGather, "input", input, false));
  FR_RETURN_IF_ERROR(CheckTensor(group, OpKind::kAllGather, "output", output, true));
  return CheckPart(group, OpKind::kAllGather, input, output);
}

absl::Status CheckReduceScatter(const ProcessGroup& group, const Tensor& input,
                                const Tensor& output) {
  FR_RETURN_IF_ERROR(CheckTensor(group, OpKind::kReduceScatter, "input", input, false));
  FR_RETURN_IF_ERROR(CheckTensor(group, OpKind::kReduceScatter, "output", output, true));
  FR_RETURN_IF_ERROR(CheckReducible(group, OpKind::kReduceScatter, input));
  return CheckPart(group, OpKind::kReduceScatter, output, input);
}

absl::Status CheckBroadcast(const ProcessGroup& group, const Tensor& tensor, int root) {
  FR_RETURN_IF_ERROR(CheckRank(group, OpKind::kBroadcast, "root", root));
  return CheckTensor(group, OpKind::kBroadcast, "tensor", tensor, group.rank() != root);
}

absl::Status CheckSend(const ProcessGroup& group, const Tensor& tensor, int peer) {
  FR_RETURN_IF_ERROR(CheckRank(group, OpKind::kSend, "peer", peer));
  return CheckTensor(group, OpKind::kSend, "tensor", tensor, false);
}

absl::Status CheckRecv(const ProcessGroup& group, const Tensor& tensor, int peer) {
  FR_RETURN_IF_ERROR(CheckRank(group, OpKind::kRecv, "peer", peer));
  return CheckTensor(group, OpKind::kRecv, "tensor", tensor, true);
}

}  // namespace forerun::comm
